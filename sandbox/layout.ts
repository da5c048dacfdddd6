import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rename, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type Authority, createAuthority, createSigningKey, type Identity, issue } from './pki.ts';

/** The content of plane.json in a plane's folder, which `attachPlane` reads. */
export interface PlaneRecord {
  readonly server: string;
  readonly binaries: { readonly kubectl: string; readonly helm: string };
  /** The process that owns the plane. */
  readonly pid: number;
  readonly execUser: string;
}

const GiB = 1024 ** 3;

/** The folder of a plane's containers. It is beside the plane's own folder, which the user of the containers cannot enter. */
export const containersFolder = (directory: string): string => `${directory}-containers`;

/** Creates a private folder and that of the containers, in memory if there is enough: `roomNeeded` bytes. */
export async function createDirectory(prefix = 'drawbridge-sandbox-', roomNeeded = GiB): Promise<string> {
  for (const root of ['/dev/shm', tmpdir()]) {
    const free = await statfs(root).then(
      (stat) => stat.bavail * stat.bsize,
      () => 0,
    );
    if (root === tmpdir() || free > roomNeeded) {
      const directory = await mkdtemp(join(root, prefix));
      for (const part of ['pki', 'kubeconfigs', 'logs']) await mkdir(join(directory, part));
      await mkdir(containersFolder(directory), { mode: 0o711 });
      return directory;
    }
  }
  throw new Error('no folder for temporary files is writable; set TMPDIR');
}

/**
 * Writes the certificates of a new plane and returns the authority that signs its users. `address` is where clients reach the API server,
 * and the API server the kubelet.
 */
export async function createPki(directory: string, address = '127.0.0.1'): Promise<Authority> {
  const authority = createAuthority('sandbox-ca');
  const frontProxy = createAuthority('sandbox-front-proxy-ca');
  const webhookCaller = createAuthority('sandbox-webhook-caller-ca');
  const serves = [...new Set(['127.0.0.1', address]), '::1', 'localhost', 'kubernetes.default.svc', '10.96.0.1'];
  const serviceAccount = createSigningKey();
  await Promise.all([
    writeIdentity(directory, 'ca', authority),
    writeIdentity(directory, 'apiserver', issue(authority, { commonName: 'kube-apiserver', serves })),
    writeIdentity(directory, 'front-proxy-ca', frontProxy),
    writeIdentity(directory, 'kubelet', issue(authority, { commonName: 'kubelet', serves: [address] })),
    writeIdentity(directory, 'kubelet-client', issue(authority, { commonName: 'kube-apiserver-kubelet-client' })),
    writeIdentity(directory, 'front-proxy-client', issue(frontProxy, { commonName: 'front-proxy-client' })),
    writeFile(join(directory, 'pki', 'webhook-caller-ca.crt'), webhookCaller.certificate),
    writeIdentity(directory, 'webhook-caller', issue(webhookCaller, { commonName: 'kube-apiserver' })),
    writeAdmissionConfiguration(directory),
    writeFile(join(directory, 'pki', 'service-account.key'), serviceAccount.key, { mode: 0o600 }),
    writeFile(join(directory, 'pki', 'service-account.pub'), serviceAccount.publicKey),
  ]);
  return authority;
}

/** Configures the API server to present the client certificate `webhook-caller` to every webhook. */
async function writeAdmissionConfiguration(directory: string): Promise<void> {
  const path = (file: string): string => join(directory, 'pki', file);
  const user = { 'client-certificate': path('webhook-caller.crt'), 'client-key': path('webhook-caller.key') };
  const kubeConfigFile = path('webhook-caller.kubeconfig');
  const plugins = ['MutatingAdmissionWebhook', 'ValidatingAdmissionWebhook'].map((name) => ({
    name,
    configuration: {
      apiVersion: 'apiserver.config.k8s.io/v1',
      kind: 'WebhookAdmissionConfiguration',
      kubeConfigFile,
    },
  }));
  const configuration = { apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AdmissionConfiguration', plugins };
  await Promise.all([
    writeFile(kubeConfigFile, stringify({ apiVersion: 'v1', kind: 'Config', users: [{ name: '*', user }] })),
    writeFile(path('admission.yaml'), stringify(configuration)),
  ]);
}

/** The authority of a plane that another process started. */
export async function readAuthority(directory: string): Promise<Authority> {
  return { commonName: 'sandbox-ca', ...(await readIdentity(directory, 'ca')) };
}

export async function readIdentity(directory: string, name: string): Promise<Identity> {
  const [certificate, key] = await Promise.all(
    ['crt', 'key'].map((end) => readFile(join(directory, 'pki', `${name}.${end}`), 'utf8')),
  );
  return { certificate: certificate ?? '', key: key ?? '' };
}

async function writeIdentity(directory: string, name: string, identity: Identity): Promise<void> {
  await writeFile(join(directory, 'pki', `${name}.crt`), identity.certificate);
  await writeFile(join(directory, 'pki', `${name}.key`), identity.key, { mode: 0o600 });
}

/** Writes plane.json in one step, so that a process that reads it finds a running plane. */
export async function writeRecord(directory: string, record: PlaneRecord): Promise<void> {
  const draft = join(directory, `plane.json.${randomUUID()}`);
  await writeFile(draft, `${JSON.stringify(record, undefined, 2)}\n`);
  await chmod(draft, 0o600);
  await rename(draft, join(directory, 'plane.json'));
}

export async function readRecord(directory: string): Promise<PlaneRecord> {
  const text = await readFile(join(directory, 'plane.json'), 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`there is no running plane in ${directory}: start one with \`make sandbox\``);
  return JSON.parse(text) as PlaneRecord;
}
