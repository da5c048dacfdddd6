import { join } from 'node:path';
import type { ComponentProgram } from './build/programs.ts';
import { containersFolder } from './layout.ts';

export interface Ports {
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly apiserver: number;
  readonly controllerManager: number;
  readonly scheduler: number;
  readonly kwok: number;
  readonly kubelet: number;
}

export interface CommandInputs {
  readonly directory: string;
  readonly ports: Ports;
  /** In place of the flags of the sandbox with the same names. */
  readonly apiserverFlags: readonly string[];
  /** In place of the flags of the sandbox with the same names. */
  readonly etcdFlags: readonly string[];
}

/** The command line of every component. */
export function commandLines(inputs: CommandInputs): Readonly<Record<ComponentProgram, readonly string[]>> {
  return {
    etcd: etcd(inputs),
    'kube-apiserver': apiserver(inputs),
    'kube-controller-manager': controllerManager(inputs),
    'kube-scheduler': scheduler(inputs),
    kwok: kwok(inputs),
    'sandbox-kubelet': kubelet(inputs),
  };
}

function etcd({ directory, ports, etcdFlags }: CommandInputs): string[] {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  const flags = [
    '--name=s',
    `--data-dir=${join(directory, 'etcd')}`,
    // Data survives the end of the process, which is the only failure here.
    '--unsafe-no-fsync',
    '--log-level=error',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=s=${peer}`,
    '--quota-backend-bytes=2147483648',
  ];
  return [...without(flags, etcdFlags), ...etcdFlags];
}

function apiserver({ directory, ports, apiserverFlags }: CommandInputs): string[] {
  const pki = (file: string): string => join(directory, 'pki', file);
  const flags = [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${ports.apiserver}`,
    // Kubernetes refuses to publish a loopback address as its endpoint, so it publishes none.
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--tls-cert-file=${pki('apiserver.crt')}`,
    `--tls-private-key-file=${pki('apiserver.key')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${pki('service-account.pub')}`,
    `--service-account-signing-key-file=${pki('service-account.key')}`,
    '--authorization-mode=Node,RBAC',
    '--allow-privileged=true',
    '--profiling=false',
    `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${pki('front-proxy-client.crt')}`,
    `--proxy-client-key-file=${pki('front-proxy-client.key')}`,
    `--admission-control-config-file=${pki('admission.yaml')}`,
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    `--kubelet-certificate-authority=${pki('ca.crt')}`,
    `--kubelet-client-certificate=${pki('kubelet-client.crt')}`,
    `--kubelet-client-key=${pki('kubelet-client.key')}`,
    '--enable-priority-and-fairness=false',
    '--max-requests-inflight=0',
    '--max-mutating-requests-inflight=0',
    `--audit-policy-file=${join(import.meta.dirname, 'audit-policy.yaml')}`,
    `--audit-log-path=${join(directory, 'audit.log')}`,
    // Never rotated, so that a byte offset stays valid.
    '--audit-log-maxsize=1000000',
  ];
  return [...without(flags, apiserverFlags), ...apiserverFlags];
}

/** The flags that `others` does not have. A flag with a list would otherwise have the values of both. */
function without(flags: readonly string[], others: readonly string[]): string[] {
  const names = new Set(others.map((flag) => flag.split('=')[0]));
  return flags.filter((flag) => !names.has(flag.split('=')[0]));
}

function controllerManager({ directory, ports }: CommandInputs): string[] {
  const pki = (file: string): string => join(directory, 'pki', file);
  return [
    ...clientFlags(directory, 'kube-controller-manager'),
    `--secure-port=${ports.controllerManager}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--service-account-private-key-file=${pki('service-account.key')}`,
    '--use-service-account-credentials=true',
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
    '--kube-api-qps=200',
    '--kube-api-burst=400',
  ];
}

function scheduler({ directory, ports }: CommandInputs): string[] {
  return [
    ...clientFlags(directory, 'kube-scheduler'),
    `--secure-port=${ports.scheduler}`,
    // The default of 50 a second would delay a test that starts hundreds of Pods.
    '--kube-api-qps=1000',
    '--kube-api-burst=2000',
  ];
}

function clientFlags(directory: string, name: string): string[] {
  const kubeconfig = join(directory, 'kubeconfigs', `${name}.yaml`);
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
  ];
}

function kwok({ directory, ports }: CommandInputs): string[] {
  return [
    `--kubeconfig=${join(directory, 'kubeconfigs', 'kwok.yaml')}`,
    `--config=${join(import.meta.dirname, 'stages.yaml')}`,
    '--manage-all-nodes=true',
    '--cidr=10.244.0.0/16',
    '--node-ip=127.0.0.1',
    '--node-name=localhost',
    // kwok writes it to the status of nodes, and the API server connects to it.
    `--node-port=${ports.kubelet}`,
    // By default, kwok listens on the port of nodes, on all addresses.
    `--server-address=127.0.0.1:${ports.kwok}`,
    '--node-lease-duration-seconds=40',
  ];
}

function kubelet({ directory, ports }: CommandInputs): string[] {
  // It runs commands on this machine, so it listens on loopback only.
  return [
    `--address=127.0.0.1:${ports.kubelet}`,
    `--pki=${join(directory, 'pki')}`,
    `--containers=${containersFolder(directory)}`,
  ];
}
