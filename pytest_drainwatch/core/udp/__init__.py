"""What only UDP flows have: a history around the verdict, and senders that expect no answer."""
