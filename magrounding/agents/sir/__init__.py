"""SIR (Zhong et al. 2021, "SILG"): the network, its text encoders and its action heads."""
