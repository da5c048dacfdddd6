import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { pauseImage } from './images/names.ts';
import { podNetworkConfiguration } from './network.ts';

export const nodeName = 'node-1';
export const containerdSocket = '/run/containerd/containerd.sock';

export interface NodeFolders {
  /** Of the node's files; the same path on this machine and in the node. */
  readonly directory: string;
  /** The control group of its Pods. */
  readonly controlGroup: string;
}

/** Writes the configuration of containerd, the CNI plugins, the kubelet, and kube-proxy, and creates the folders that they need. */
export async function writeConfiguration({ directory, controlGroup }: NodeFolders): Promise<void> {
  const path = (name: string): string => join(directory, name);
  for (const folder of ['kubelet', 'containerd', 'var-log', 'cni', 'plugins']) await mkdir(path(folder));
  await Promise.all([
    // No name server: what a Pod or containerd looks up fails at once.
    writeFile(path('resolv.conf'), 'nameserver 127.0.0.1\n'),
    writeFile(path('containerd.toml'), containerdConfiguration(directory)),
    writeFile(path('cni/10-pods.conflist'), JSON.stringify(podNetworkConfiguration('/run/cni-ipam'))),
    writeFile(path('kubelet.yaml'), stringify(kubeletConfiguration(directory, controlGroup))),
    writeFile(path('kube-proxy.yaml'), stringify(proxyConfiguration(directory))),
  ]);
}

// Without restrict_oom_score_adj, containers would not start where root lacks CAP_SYS_RESOURCE.
const containerdConfiguration = (directory: string): string => `
version = 3
disabled_plugins = ["io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri"]
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "${pauseImage}"
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "${join(directory, 'cni')}"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`;

const kubeletConfiguration = (directory: string, controlGroup: string): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  cgroupDriver: 'cgroupfs',
  cgroupRoot: `/${controlGroup}`,
  failCgroupV1: false,
  failSwapOn: false,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: join(directory, 'pki/ca.crt') },
  },
  authorization: { mode: 'Webhook' },
  tlsCertFile: join(directory, 'pki/kubelet.crt'),
  tlsPrivateKeyFile: join(directory, 'pki/kubelet.key'),
  clusterDomain: 'cluster.local',
  clusterDNS: ['10.96.0.10'],
  resolvConf: join(directory, 'resolv.conf'),
  containerRuntimeEndpoint: `unix://${containerdSocket}`,
  volumePluginDir: join(directory, 'plugins'),
  evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
  // Images are imported, so the kubelet could not get a deleted one again.
  imageGCHighThresholdPercent: 100,
});

const proxyConfiguration = (directory: string): object => ({
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  clientConnection: { kubeconfig: join(directory, 'kubeconfigs/kube-proxy.yaml') },
  mode: 'iptables',
  hostnameOverride: nodeName,
  // The limits belong to the machine.
  conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
});

/** The command lines of the programs that run in all namespaces of the node. */
export const nodeCommandLines = (directory: string, address: string) =>
  ({
    containerd: [`--config=${join(directory, 'containerd.toml')}`],
    kubelet: [
      `--config=${join(directory, 'kubelet.yaml')}`,
      `--kubeconfig=${join(directory, 'kubeconfigs/kubelet.yaml')}`,
      `--hostname-override=${nodeName}`,
      `--node-ip=${address}`,
      '--node-labels=topology.kubernetes.io/zone=zone-1',
    ],
    'kube-proxy': [`--config=${join(directory, 'kube-proxy.yaml')}`],
  }) as const;

/** What differs from the API server of a plane: it publishes its address, protects itself from load, and restricts kubelets. */
export const apiserverFlags = (address: string): string[] => [
  '--bind-address=0.0.0.0',
  `--advertise-address=${address}`,
  '--endpoint-reconciler-type=lease',
  '--enable-admission-plugins=NodeRestriction',
  '--admission-control-config-file=',
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  '--enable-priority-and-fairness=true',
  '--max-requests-inflight=400',
  '--max-mutating-requests-inflight=200',
];
