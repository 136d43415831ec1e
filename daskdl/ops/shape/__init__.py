"""Operations that permute, join, cut or reduce axes."""
