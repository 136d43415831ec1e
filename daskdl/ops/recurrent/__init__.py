"""RNN, LSTM, GRU, and their convolutional variants."""
