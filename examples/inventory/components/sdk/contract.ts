import { parseTime } from './clock.ts';
import type { KubeObject } from './kubernetes.ts';
import { CodedError, isRecord, type JsonPointer, own } from './values.ts';

/** The contract that docs/inventory/component-contract.md of drawbridge describes, as types. */
export interface ReconcileRequest {
  readonly protocol: 'v1';
  readonly run: {
    /** Every report must contain it; an answer may, and then it must match. */
    readonly id: string;
    /** From 1, for this component and entry. */
    readonly seq: number;
    readonly attempt: number;
    /** RFC 3339. Before it, the component must answer: the outcome, or 202 to go on. */
    readonly deadline: string;
    /** Such as `InputChanged:/status/outputs/network/vnetName`. */
    readonly reasons: readonly string[];
  };
  readonly operation: 'reconcile' | 'delete';
  readonly component: string;
  /** `id`: the UID of the entry. */
  readonly entry: { readonly url: string; readonly id: string; readonly resourceVersion: string };
  /** Of the run, for the entry and for reports. `ca`: PEM; if absent, the public CAs. */
  readonly auth: { readonly token: string; readonly expires: string; readonly ca?: string };
  readonly callback: string;
}

export interface MissingInput {
  readonly path: JsonPointer;
  readonly want: 'present' | 'absent' | 'equals';
  /** For `equals`. */
  readonly value?: unknown;
}

interface WithMessage {
  /** For people. */
  readonly message?: string;
}

interface WithOutputs {
  /** Merge patch of `status.outputs`, only of paths that the component owns. */
  readonly outputs?: Readonly<Record<string, unknown>>;
}

export type Outcome =
  /** The inputs of this run are reconciled. */
  | ({ readonly outcome: 'Done' } & WithMessage & WithOutputs)
  /** No failure: the server calls again once the missing inputs are as wanted. */
  | ({ readonly outcome: 'NotReady'; readonly missing: readonly [MissingInput, ...MissingInput[]] } & WithMessage)
  /** No failure: something external is in progress. The server calls again after this time. */
  | ({ readonly outcome: 'Progressing'; readonly requeueAfterSeconds: number } & WithMessage & WithOutputs)
  /** A transient failure. The server retries with backoff. */
  | ({ readonly outcome: 'Retry' } & WithMessage)
  /** A permanent failure with these inputs. */
  | ({ readonly outcome: 'Failed' } & WithMessage)
  /** Everything that the component created is deleted. Only for the operation `delete`. */
  | ({ readonly outcome: 'Deleted' } & WithMessage);

/** The answer to a heartbeat: until the next report, and perhaps a new token. */
export interface RunExtension {
  readonly leaseSeconds: number;
  readonly auth?: { readonly token: string; readonly expires: string };
}

/**
 * Stateless and idempotent, because the server may call again at any time, on any replica. A thrown
 * error counts as Retry.
 *
 *     const dns: Component = {
 *       name: 'dns',
 *       reconcile: async ({ entry }) => createZone(await entry.get()),
 *     };
 */
export interface Component {
  readonly name: string;
  reconcile(run: RunContext): Promise<Outcome>;
}

export interface RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /**
   * The first call answers 202, later ones extend the run. `timeoutSeconds`: until the next report,
   * 1 to 3,600. Rejects with the reason of `signal`.
   */
  heartbeat(timeoutSeconds?: number): Promise<void>;
  /** Aborts with `RunAbandoned` when the server drops the call or rejects a report. */
  readonly signal: AbortSignal;
}

/**
 * Reads and writes the entry with the token of the run. Rejects as KubeClient does. After a 401, or
 * a 403 with `NoSuchRun`, the run has usually ended: stop, and return an outcome.
 */
export interface EntryAccessor {
  get(): Promise<KubeObject>;
  /** Sends `patch`, such as `{ status: { outputs } }`, to the subresource status. */
  patch(patch: Readonly<Record<string, unknown>>): Promise<KubeObject>;
  /** Reads the Secret with the kubeconfig, if permitted. */
  kubeconfig(): Promise<KubeObject>;
  /** Writes that Secret, if the component is its producer. */
  writeKubeconfig(text: string): Promise<KubeObject>;
  /** Reads another Secret in the entry's namespace, such as a supplied kubeconfig, if permitted. */
  secret(name: string): Promise<KubeObject>;
}

/** Below the endpoint of a component. The server posts runs there. */
export const reconcilePath = '/v1/reconcile';
/** Below the callback URL. The run ID follows it. */
export const callbackPath = '/v1/runs/';
/** Of the token with which the server calls a component. */
export const callAudience = (component: string): string => `drawbridge/${component}`;
/** UID of the entry, on objects of its components. */
export const entryUidLabel = 'inventory.drawbridge.dev/entry-uid';
/** On entries: a new value runs the component as soon as a run may start. */
export const forceAnnotation = (component: string): string => `force.inventory.drawbridge.dev/${component}`;
/** Where the producer of a kubeconfig publishes the reference to its Secret. */
export const kubeconfigOutput: JsonPointer = '/status/outputs/kubeconfig';
export const kubeconfigKey = 'config';
/** In the entry's namespace. The server creates the Secret; the producing component fills it. */
export const kubeconfigSecretName = (entryUid: string): string => `kc-${entryUid}`;
/** Characters that the server stores of a message. */
export const maxMessage = 1024;

/** The body is untrusted. Drops unknown fields. Throws CodedError `InvalidRequest`. */
export function readReconcileRequest(body: unknown): ReconcileRequest {
  if (!isRecord(body)) throw invalid('the body', 'an object');
  const run = section(body, 'run');
  const entry = section(body, 'entry');
  const auth = section(body, 'auth');
  const { reasons = [] } = { reasons: own(run, 'reasons') };
  if (!Array.isArray(reasons) || !reasons.every((reason) => typeof reason === 'string'))
    throw invalid('run.reasons', 'a list of texts');
  const ca = own(auth, 'ca') === undefined ? {} : { ca: text(auth, 'auth.ca', 131_072) };
  return {
    protocol: oneOf(body, 'protocol', ['v1']),
    run: {
      id: text(run, 'run.id', 256),
      seq: wholeNumber(run, 'run.seq', 1),
      attempt: wholeNumber(run, 'run.attempt', 0),
      deadline: time(run, 'run.deadline'),
      reasons,
    },
    operation: oneOf(body, 'operation', ['reconcile', 'delete']),
    component: text(body, 'component', 63),
    entry: {
      url: text(entry, 'entry.url', 2048),
      id: text(entry, 'entry.id', 128),
      resourceVersion: text(entry, 'entry.resourceVersion', 128),
    },
    auth: { token: text(auth, 'auth.token', 16_384), expires: time(auth, 'auth.expires'), ...ca },
    callback: text(body, 'callback', 2048),
  };
}

const invalid = (field: string, wanted: string): CodedError =>
  new CodedError('InvalidRequest', `${field} must be ${wanted}; update the component if the server is newer`);

function section(body: object, field: string): object {
  const value = own(body, field);
  if (isRecord(value)) return value;
  throw invalid(field, 'an object');
}

/** The value at the last segment of the dotted `path`. */
const at = (object: object, path: string): unknown => own(object, path.slice(path.lastIndexOf('.') + 1));

function text(object: object, path: string, maxLength: number): string {
  const value = at(object, path);
  if (typeof value === 'string' && value !== '' && value.length <= maxLength) return value;
  throw invalid(path, `a text of 1 to ${maxLength} characters`);
}

function time(object: object, path: string): string {
  const value = text(object, path, 64);
  if (parseTime(value) !== undefined) return value;
  throw invalid(path, 'a time as in RFC 3339');
}

function wholeNumber(object: object, path: string, minimum: number): number {
  const value = at(object, path);
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= minimum) return value;
  throw invalid(path, `a whole number from ${minimum}`);
}

function oneOf<T extends string>(object: object, field: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === own(object, field));
  if (found !== undefined) return found;
  throw invalid(field, `one of ${allowed.join(', ')}`);
}
