"""What a trial would have recorded: a model of a pod's end, pure and without chance."""
