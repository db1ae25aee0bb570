"""What eyestream costs, against what is unavoidable and what one would use instead; nothing here is a test."""
