import { broken, type Outcomes, share } from './reports.ts';

export interface Results {
  /** Of Kubernetes, such as v1.36.3. */
  readonly version: string;
  /** Conformance tests without drawbridge, with all features, and with every Deployment at 0. */
  readonly bare: Outcomes;
  readonly up: Outcomes;
  readonly down: Outcomes;
  /** Tests of kubectl's streams. */
  readonly direct: Outcomes;
  readonly gateway: Outcomes;
  /** How long a namespace took to go after every Deployment was at 0. */
  readonly deletionMs: number;
}

/** docs/reference/conformance.md, and how many tests fail with drawbridge that pass without it. */
export function page(results: Results): { text: string; failures: number } {
  const { version, bare, up, down, direct, gateway, deletionMs } = results;
  const compared = [
    { title: 'conformance, all features up', base: bare, run: up },
    { title: 'conformance, every Deployment at 0', base: bare, run: down },
    { title: "kubectl's streams, through the gateway", base: direct, run: gateway },
  ];
  const rows = compared.map(
    ({ title, base, run }) => `| ${title} | ${share(base, run)} | ${list(broken(base, run))} |`,
  );
  const text = `<!-- Written by make conformance. Do not edit: run it again. -->

# What do Kubernetes' own tests say of a cluster with drawbridge?

The results of its end-to-end tests on a [real node](../adr/0003-sandbox.md) with Kubernetes ${version}. The
columns count the tests that pass on the same node without drawbridge.

| run | pass | fail |
| --- | --- | --- |
${rows.join('\n')}

A namespace that was deleted when every Deployment was at 0 went after ${Math.round(deletionMs / 1000)} s.

\`make conformance\` runs these tests again.
`;
  return { text, failures: compared.reduce((sum, { base, run }) => sum + broken(base, run).length, 0) };
}

const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join('<br>'));
