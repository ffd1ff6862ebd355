"""What people see while a run measures."""
