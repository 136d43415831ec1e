"""Images as pixels: resized, warped, recoloured."""
