import { fileURLToPath } from 'node:url';
import { kubeletVersion, kubernetesVersion, kwokVersion } from '../versions.ts';

export const componentPrograms = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kwok',
  'sandbox-kubelet',
] as const;
export const goPrograms = [...componentPrograms, 'versitygw'] as const;
export const clientPrograms = ['kubectl', 'helm'] as const;
/** The programs of a plane. */
export const programs = [...componentPrograms, ...clientPrograms] as const;

export type ComponentProgram = (typeof componentPrograms)[number];
export type GoProgram = (typeof goPrograms)[number];
export type ClientProgram = (typeof clientPrograms)[number];
export type Program = (typeof programs)[number];

/** Absolute paths of the programs of a plane. */
export type Binaries = Readonly<Record<Program, string>>;

export interface GoTarget {
  /** Folder of the module that contains the program, or pins its version. */
  readonly module: string;
  readonly package: string;
  readonly ldflags: string;
}

const kubernetesModule = fileURLToPath(new URL('../kubernetes', import.meta.url));
const kwokModule = fileURLToPath(new URL('../kwok', import.meta.url));
const kubeletModule = fileURLToPath(new URL('../kubelet', import.meta.url));
const s3Module = fileURLToPath(new URL('../s3', import.meta.url));

/** Flags of every program; `GoTarget.ldflags` has the flags of one. */
export const goFlags: readonly string[] = ['-trimpath', '-tags=grpcnotrace,notest'];

// Without a stamp, programs report v0.0.0-master, which breaks version checks in Helm and kubectl.
// The date is constant, because a changing date would defeat Go's link cache.
const stamp = [
  `gitVersion=${kubernetesVersion}`,
  'gitMajor=1',
  'gitMinor=36',
  'gitCommit=0f29094e5b73085e3802ecc1298ecae13866bfe6',
  'gitTreeState=clean',
  'buildDate=2026-07-22T00:00:00Z',
];

const kubernetesLdflags = [
  '-s -w',
  ...stamp.map((pair) => `-X k8s.io/component-base/version.${pair} -X k8s.io/client-go/pkg/version.${pair}`),
].join(' ');

const ofKubernetes = (path: string): GoTarget => ({
  module: kubernetesModule,
  package: path,
  ldflags: kubernetesLdflags,
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
  versitygw: { module: s3Module, package: 'github.com/versity/versitygw/cmd/versitygw', ldflags: '-s -w' },
};
