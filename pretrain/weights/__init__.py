"""Operations on weights: surgery, masks, scaling, parametrizations, penalties."""
