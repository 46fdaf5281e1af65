"""The parameters of attention heads: of one from questions, of two from examples, with a certificate."""

import argparse

from attlas import layers, recovery, tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, for a look at what it does")
    d, n = (5, 400) if parser.parse_args().quick else (12, 3000)

    head = recovery.Layer(*recovery.planted_layer(heads=1, d=d, seed=0))
    probe = recovery.learn_from_queries(lambda x: head(x[None])[0, -1], d=d, heads=1)
    error = recovery.parameter_error(probe, head)
    print(f"one head from {probe.certificate.queries} questions (d² + d = {d * d + d}): parameters to {error:.0e}")

    Theta, W = recovery.planted_layer(heads=2, d=d, seed=1)
    X = tokens.boolean(n, 4, d, seed=2)
    Y = layers.multi_head_attention(X, Theta, W)
    for heads in (1, 2):
        found = recovery.learn(X, Y, heads=heads)
        met = "met" if found.certificate.met else "not met"
        print(f"{heads} of two heads from {n} examples: certificate {met}, {found.certificate.reason}")
    print(f"parameters of both heads to {recovery.parameter_error(found.canonical(), recovery.Layer(Theta, W)):.0e}")


if __name__ == "__main__":
    main()
