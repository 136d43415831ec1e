"""RNN, LSTM, GRU, and their convolutional kin."""
