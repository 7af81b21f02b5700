"""The real peers of the tests: Apache servers, Java clients, and bolide, all behind one small interface."""
