import type { SecretKeyRef } from '../../api/binding/secret-key-ref.ts';
import { keyOf } from '../../api/object.ts';
import { canonicalJson, sha256Hex } from '../../kit/canonical-json.ts';
import { describe, quote } from '../../kit/errors.ts';
import type { Credentials } from '../../kube/credentials.ts';
import { type InlineCredentials, inlineCredentials } from '../../kube/inline-kubeconfig.ts';
import type { SecretProblem } from './provider-session.ts';
import { type SecretView, textOf } from './secret-watches.ts';

/** A valid kubeconfig, from which a session can be opened. */
export interface Kubeconfig {
  /** Short hash of server, namespace, and credentials. */
  readonly id: string;
  readonly credentials: Credentials;
  /** The cluster namespace. */
  readonly namespace: string;
}

/** Why no session can be opened from a Secret, and what to do. */
export interface KubeconfigProblem {
  readonly reason: SecretProblem;
  readonly message: string;
}

export type ReadKubeconfig = { readonly kubeconfig: Kubeconfig } | { readonly problem: KubeconfigProblem };

/** Parses the kubeconfig under a key of a Secret, without a call to the provider. */
export async function kubeconfigIn(ref: SecretKeyRef, secret: SecretView | undefined): Promise<ReadKubeconfig> {
  const name = keyOf(ref);
  if (!secret) {
    return problem(
      'KubeconfigSecretNotFound',
      `secret ${name} not found; create it with the kubeconfig of the provider, or run kubectl bind again`,
    );
  }
  const text = textOf(secret, ref.key);
  if (text === undefined) {
    const keys = Object.keys(secret.data)
      .sort()
      .slice(0, 8)
      .map((key) => quote(key));
    const content = keys.length > 0 ? `it has ${keys.join(', ')}` : 'it is empty';
    return invalid(`secret ${name}: missing key ${quote(ref.key)}; ${content}`);
  }
  return kubeconfigFrom(text, `secret ${name}`);
}

/** Parses a kubeconfig. `where` is the prefix of the message. */
export async function kubeconfigFrom(text: string, where: string): Promise<ReadKubeconfig> {
  let credentials: InlineCredentials;
  try {
    credentials = await inlineCredentials(text);
  } catch (error) {
    return invalid(`${where}: ${describe(error)}`);
  }
  const { context, namespace } = credentials;
  if (!namespace) {
    const allowed = "it must be the provider's namespace for this cluster";
    return invalid(`${where}: current context ${quote(context)} has no namespace set; ${allowed}`);
  }
  return { kubeconfig: { id: await idOf(credentials, namespace), credentials, namespace } };
}

async function idOf({ server, connectionAuth }: Credentials, namespace: string): Promise<string> {
  const { tls, headers } = await connectionAuth();
  const { ca, cert, key, servername } = tls;
  const pems = [ca, cert, key].map((pem) => pem?.toString() ?? '');
  return sha256Hex(canonicalJson([server, namespace, headers, pems, servername ?? ''])).slice(0, 10);
}

const problem = (reason: SecretProblem, message: string): ReadKubeconfig => ({ problem: { reason, message } });
const invalid = (message: string): ReadKubeconfig => problem('KubeconfigSecretInvalid', message);
