"""The rule of the product: from what was seen to the Job's condition. No I/O."""
