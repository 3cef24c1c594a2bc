"""SIR, one network for worlds of many kinds (Zhong et al. 2021, "SILG"): it, how it reads texts, and how it acts."""
