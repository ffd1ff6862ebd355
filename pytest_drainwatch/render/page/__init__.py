"""What the HTML page shows, as data: pure, from reports, and of no browser's business."""
