"""Operations on the weights of a network: surgery by name, and reparametrizing maps."""
