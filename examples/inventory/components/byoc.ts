import { type DesiredObject, ensure, remove, withCluster } from './cluster-objects.ts';
import { type ComponentsDeps, notReadyUnlessPresent, textAt } from './inputs.ts';
import {
  deletedOnceUnused,
  digestOf,
  ensureKubeconfig,
  type IssuedKubeconfig,
  ifPresent,
  lifetimeOf,
  textIn,
} from './kubeconfig.ts';
import { parseTime } from './sdk/clock.ts';
import { type Component, kubeconfigKey, kubeconfigOutput, type Outcome, type RunContext } from './sdk/contract.ts';
import { inlineCredentials } from './sdk/credentials.ts';
import {
  type Credentials,
  clusterRoleBindings,
  hasStatus,
  isForbidden,
  isNotFound,
  type KubeObject,
  serviceAccounts,
} from './sdk/kubernetes.ts';
import { CodedError, describe, valueAt } from './sdk/values.ts';

const name = 'byoc';
const secretNamePath = '/spec/kubeconfigSecretRef/name';
const secretKeyPath = '/spec/kubeconfigSecretRef/key';

/**
 * Stands in for the component `kubeconfig` for an existing cluster: publishes a new kubeconfig that
 * expires instead of the supplied one, which other components cannot read. Never deletes the
 * cluster.
 */
export function byocComponent(deps: ComponentsDeps): Component {
  return {
    name,
    reconcile: async (run) => {
      const entry = await run.entry.get();
      if (run.request.operation === 'delete') return tearDown(deps, run, entry);
      const notReady = notReadyUnlessPresent(entry, secretNamePath);
      if (notReady) return notReady;
      const supplied = await readSupplied(run, entry);
      return 'outcome' in supplied ? supplied : publish(deps, run, entry, supplied);
    },
  };
}

interface Supplied {
  readonly text: string;
  readonly credentials: Credentials;
}

async function readSupplied(run: RunContext, entry: KubeObject): Promise<Supplied | Outcome> {
  const secret = textAt(entry, secretNamePath) ?? '';
  const key = textAt(entry, secretKeyPath) ?? kubeconfigKey;
  const text = textIn(await run.entry.secret(secret), key);
  if (text === undefined)
    return {
      outcome: 'Failed',
      message: `Secret ${secret} has no key ${key}, or its value is empty; add the kubeconfig under this key`,
    };
  try {
    return { text, credentials: inlineCredentials(text) };
  } catch (error) {
    return { outcome: 'Failed', message: `Secret ${secret}, key ${key}: ${describe(error)}` };
  }
}

async function publish(
  deps: ComponentsDeps,
  run: RunContext,
  entry: KubeObject,
  { text, credentials }: Supplied,
): Promise<Outcome> {
  const issue = () => issueKubeconfig(deps, run, { text, credentials }, lifetimeOf(entry, name));
  try {
    return await ensureKubeconfig(run, entry, { component: name, origin: digestOf(text), issue }, deps.clock);
  } catch (error) {
    if (!(error instanceof CodedError && error.code === 'NotAdministrator')) throw error;
    return { outcome: 'Failed', message: error.message };
  }
}

/**
 * A kubeconfig for an account with `cluster-admin` of this entry only; it expires with its token,
 * or at teardown. Rejects with `NotAdministrator` if the supplied one may not create that account.
 */
function issueKubeconfig(
  deps: ComponentsDeps,
  run: RunContext,
  { text, credentials }: Supplied,
  lifetimeSeconds: number,
): Promise<IssuedKubeconfig> {
  return withCluster(deps, run, text, async (client, signal) => {
    const [account, binding] = accountAndBindingOf(run.request.entry.id);
    await asAdministrator(() => ensure(client, account, signal));
    const { namespace = '', name } = account.name;
    const { token, expiresAt } = await client.createToken(
      { namespace, name },
      { expirationSeconds: lifetimeSeconds },
      { signal },
    );
    const issued = kubeconfigOf(credentials, token);
    // Before the account gets permissions: an empty Secret tells the teardown that none has any.
    if (textIn(await ifPresent(run.entry.kubeconfig())) === undefined) await run.entry.writeKubeconfig(issued);
    await asAdministrator(() => ensure(client, binding, signal));
    return { text: issued, expiresAtMs: parseTime(expiresAt) ?? deps.clock.now() + lifetimeSeconds * 1000 };
  });
}

/**
 * Removes the account with the issued kubeconfig or, if that fails, the supplied one: an account
 * without its ClusterRoleBinding cannot delete itself. If neither works, the account stays.
 */
async function tearDown(deps: ComponentsDeps, run: RunContext, entry: KubeObject): Promise<Outcome> {
  const unused = deletedOnceUnused(entry);
  if (unused.outcome !== 'Deleted') return unused;
  const issued = textIn(await ifPresent(run.entry.kubeconfig(), isWithheld));
  const secret = textAt(entry, secretNamePath);
  const supplied =
    secret &&
    textIn(await ifPresent(run.entry.secret(secret), isWithheld), textAt(entry, secretKeyPath) ?? kubeconfigKey);
  const wasIssued = issued !== undefined || valueAt(entry, kubeconfigOutput) !== undefined;
  for (const text of [issued, supplied]) {
    if (!text || !isUsable(text)) continue;
    try {
      await removeAccount(deps, run, text);
      break;
    } catch (error) {
      if (wasIssued && !isRejected(error)) throw error;
    }
  }
  return unused;
}

/** The Secret does not exist, or the component may not read it. */
const isWithheld = (error: unknown): boolean => isNotFound(error) || isForbidden(error);

function isUsable(kubeconfig: string): boolean {
  try {
    inlineCredentials(kubeconfig);
    return true;
  } catch {
    return false;
  }
}

const isRejected = (error: unknown): boolean => isForbidden(error) || hasStatus(error, 401);

async function removeAccount(deps: ComponentsDeps, run: RunContext, text: string): Promise<void> {
  const [account, binding] = accountAndBindingOf(run.request.entry.id);
  await withCluster(deps, run, text, async (client, signal) => {
    await remove(client, binding, signal);
    await remove(client, account, signal);
  });
}

/** In the managed cluster. */
function accountAndBindingOf(entryUid: string): readonly [account: DesiredObject, binding: DesiredObject] {
  const account = { namespace: 'kube-system', name: `drawbridge-${entryUid}` };
  const content = {
    roleRef: { apiGroup: clusterRoleBindings.group, kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', ...account }],
  };
  return [
    { resource: serviceAccounts, name: account, entryUid, content: {} },
    { resource: clusterRoleBindings, name: { name: account.name }, entryUid, content },
  ];
}

/** Only an administrator may grant cluster-admin: Forbidden becomes `NotAdministrator`. */
async function asAdministrator<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const message = `the supplied kubeconfig has insufficient permissions: ${describe(error)}; supply the kubeconfig of a cluster administrator`;
    throw new CodedError('NotAdministrator', message);
  }
}

/** As JSON, which is valid YAML. */
function kubeconfigOf({ server, tls }: Credentials, token: string): string {
  const authority =
    tls.ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(tls.ca).toString('base64') };
  const servername = tls.servername === undefined ? {} : { 'tls-server-name': tls.servername };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cluster', cluster: { server, ...authority, ...servername } }],
    users: [{ name: 'drawbridge', user: { token } }],
    contexts: [{ name: 'cluster', context: { cluster: 'cluster', user: 'drawbridge' } }],
    'current-context': 'cluster',
  });
}
