import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { describe, quote } from '../../kit/errors.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { type InlineCredentials, inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { SecretProblem } from './provider-session.ts';
import { type SecretView, textOf } from './secret-watches.ts';

export interface Kubeconfig {
  /** Identifies a session: the start of a hash of server, namespace, and credentials. */
  readonly id: string;
  readonly credentials: Credentials;
  /** Of the current context: the provider reserves it for this consumer. */
  readonly namespace: string;
}

export interface KubeconfigProblem {
  readonly reason: SecretProblem;
  readonly message: string;
}

type KubeconfigResult = { readonly kubeconfig: Kubeconfig } | { readonly problem: KubeconfigProblem };

/** Without a call to the provider. Never rejects: any fault is a `problem`. */
export async function readKubeconfigSecret(
  ref: SecretKeyRef,
  secret: SecretView | undefined,
): Promise<KubeconfigResult> {
  const name = keyOf(ref);
  if (!secret) {
    return problem(
      'KubeconfigSecretNotFound',
      `Secret ${name} not found; create it with the kubeconfig of the provider, or run kubectl bind again`,
    );
  }
  const text = textOf(secret, ref.key);
  if (text === undefined) {
    const content = contentOf(Object.keys(secret.data).sort());
    return invalid(
      `Secret ${name} has no key ${quote(ref.key)}; ${content}; add the key with the kubeconfig of the provider, or run kubectl bind again`,
    );
  }
  return readKubeconfig(text, `Secret ${name}`);
}

/** `where`: its source in messages, such as `Secret kube-bind/acme`. Never rejects. */
export async function readKubeconfig(text: string, where: string): Promise<KubeconfigResult> {
  let credentials: InlineCredentials;
  try {
    credentials = await inlineCredentials(text);
  } catch (error) {
    return invalid(`${where}: ${describe(error)}; replace it with the kubeconfig that the provider issued`);
  }
  const { context, namespace } = credentials;
  if (!namespace) {
    return invalid(
      `${where}: current context ${quote(context)} has no namespace; set the namespace that the provider reserves for this cluster`,
    );
  }
  return { kubeconfig: { id: await idOf(credentials, namespace), credentials, namespace } };
}

const maxShownKeys = 8;

function contentOf(keys: readonly string[]): string {
  if (keys.length === 0) return 'it is empty';
  const shown = keys.slice(0, maxShownKeys).map((key) => quote(key));
  const more = keys.length > maxShownKeys ? `, and ${keys.length - maxShownKeys} more` : '';
  return `it has ${shown.join(', ')}${more}`;
}

async function idOf({ server, connectionAuth }: Credentials, namespace: string): Promise<string> {
  const { tls, headers } = await connectionAuth();
  const { ca, cert, key, servername } = tls;
  const pems = [ca, cert, key].map((pem) => pem?.toString() ?? '');
  return sha256Hex(canonicalJson([server, namespace, headers, pems, servername ?? ''])).slice(0, 10);
}

const problem = (reason: SecretProblem, message: string): KubeconfigResult => ({ problem: { reason, message } });
const invalid = (message: string): KubeconfigResult => problem('KubeconfigSecretInvalid', message);
