"""Windows of arrays as samples: cut out lazily, chosen by what they show, laid out in a grid."""
