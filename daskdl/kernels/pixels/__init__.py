"""Operations on images' pixels: resize, warp, recolour."""
