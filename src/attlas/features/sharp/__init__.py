"""The sharp theory: exact spectra, a fixed point, and the test error that follows. Its door is `features.theory`."""
