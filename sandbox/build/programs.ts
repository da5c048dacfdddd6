import { fileURLToPath } from 'node:url';
import { containerdVersion, kubeletVersion, kubernetesVersion, kwokVersion, usualKubernetes } from '../versions.ts';

export const componentPrograms = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
  'sandbox-kubelet',
] as const;
/** The programs of a real node, besides those of the control plane. */
export const nodePrograms = ['kubelet', 'kube-proxy', 'containerd', 'containerd-shim-runc-v2', 'ctr'] as const;
/** Kubernetes' own end-to-end tests, their runner, and the program of their images. */
export const conformancePrograms = ['e2e.test', 'ginkgo', 'agnhost'] as const;
export const goPrograms = [...componentPrograms, ...nodePrograms, ...conformancePrograms, 'versitygw'] as const;
export const clientPrograms = ['kubectl', 'helm'] as const;
/** The programs of a plane. */
export const programs = [...componentPrograms, ...clientPrograms] as const;

export type ComponentProgram = (typeof componentPrograms)[number];
export type NodeProgram = (typeof nodePrograms)[number];
export type GoProgram = (typeof goPrograms)[number];
export type ClientProgram = (typeof clientPrograms)[number];
export type Program = (typeof programs)[number];

/** Absolute paths of the programs of a plane. */
export type Binaries = Readonly<Record<Program, string>>;

export interface GoTarget {
  /** Folder of the module that contains the program, or pins its version. */
  readonly module: string;
  readonly package: string;
  /** Whether the program is the tests of the package. */
  readonly isTest?: boolean;
  /** Build tags besides those of every program. The programs of one module have the same. */
  readonly tags?: readonly string[];
  /** The programs of one module have the same. */
  readonly ldflags: string;
  /** The Kubernetes version whose own go.mod pins the module, which is written when a program is built. */
  readonly ofVersion?: string;
}

const kubernetesModule = fileURLToPath(new URL('../kubernetes', import.meta.url));
const kwokModule = fileURLToPath(new URL('../kwok', import.meta.url));
const kubeletModule = fileURLToPath(new URL('../kubelet', import.meta.url));
const containerdModule = fileURLToPath(new URL('../containerd', import.meta.url));
const conformanceModule = fileURLToPath(new URL('../conformance', import.meta.url));
const s3Module = fileURLToPath(new URL('../s3', import.meta.url));

/** The flags that the programs of a module are built with. */
export const goFlags = ({ tags = [], ldflags, ofVersion }: GoTarget): string[] => [
  ...(ofVersion === undefined ? [] : ['-mod=mod']),
  '-trimpath',
  `-tags=${['grpcnotrace', 'notest', ...tags].join(',')}`,
  `-ldflags=${ldflags}`,
];

// Without a stamp, programs report v0.0.0-master, which breaks version checks in Helm and kubectl.
// The date is constant, because a changing date would defeat Go's link cache.
const stamp = [
  `gitVersion=${kubernetesVersion}`,
  'gitMajor=1',
  `gitMinor=${kubernetesVersion.split('.')[1]}`,
  'gitCommit=0f29094e5b73085e3802ecc1298ecae13866bfe6',
  'gitTreeState=clean',
  'buildDate=2026-07-22T00:00:00Z',
];

const kubernetesLdflags = [
  '-s -w',
  ...stamp.map((pair) => `-X k8s.io/component-base/version.${pair} -X k8s.io/client-go/pkg/version.${pair}`),
].join(' ');

const ofContainerd = (name: string): GoTarget => ({
  module: containerdModule,
  package: `github.com/containerd/containerd/v2/cmd/${name}`,
  // Its snapshots are overlays.
  tags: ['no_btrfs', 'no_devmapper', 'no_zfs'],
  ldflags: `-s -w -X github.com/containerd/containerd/v2/version.Version=${containerdVersion}`,
});

const ofKubernetes = (path: string, module?: string): GoTarget => ({
  module: module ?? kubernetesModule,
  package: path,
  ldflags: kubernetesLdflags,
  ...(module !== undefined || kubernetesVersion === usualKubernetes ? {} : { ofVersion: kubernetesVersion }),
});

export const goTargets: Readonly<Record<GoProgram, GoTarget>> = {
  etcd: ofKubernetes('go.etcd.io/etcd/server/v3'),
  'kube-apiserver': ofKubernetes('k8s.io/kubernetes/cmd/kube-apiserver'),
  'kube-controller-manager': ofKubernetes('k8s.io/kubernetes/cmd/kube-controller-manager'),
  'kube-scheduler': ofKubernetes('k8s.io/kubernetes/cmd/kube-scheduler'),
  kwok: {
    module: kwokModule,
    package: 'sigs.k8s.io/kwok/cmd/kwok',
    ldflags: `-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=${kwokVersion}`,
  },
  'sandbox-kubelet': {
    module: kubeletModule,
    package: '.',
    ldflags: `-s -w -X main.version=${kubeletVersion}`,
  },
  kubelet: ofKubernetes('k8s.io/kubernetes/cmd/kubelet'),
  'kube-proxy': ofKubernetes('k8s.io/kubernetes/cmd/kube-proxy'),
  containerd: ofContainerd('containerd'),
  'containerd-shim-runc-v2': ofContainerd('containerd-shim-runc-v2'),
  ctr: ofContainerd('ctr'),
  'e2e.test': { ...ofKubernetes('k8s.io/kubernetes/test/e2e', conformanceModule), isTest: true },
  ginkgo: ofKubernetes('github.com/onsi/ginkgo/v2/ginkgo', conformanceModule),
  agnhost: ofKubernetes('k8s.io/kubernetes/test/images/agnhost', conformanceModule),
  versitygw: { module: s3Module, package: 'github.com/versity/versitygw/cmd/versitygw', ldflags: '-s -w' },
};
