"""RNN, LSTM and GRU, and their convolutional variants."""
