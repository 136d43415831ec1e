"""Rain in the frame that moves with it: motion, advection, bands of scales and their memory."""
