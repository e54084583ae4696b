"""Trees for the eye: splits and trees in words (`condition`, `text`) and as drawings (`plot`)."""
