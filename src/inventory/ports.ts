import type { RemoteWatch } from '../api/inventory/component-reconciler.ts';
import type { Outcome } from '../api/inventory/contract/outcome.ts';
import type { RunExtension } from '../api/inventory/contract/report.ts';
import type { ReconcileRequest } from '../api/inventory/contract/request.ts';
import type { KubeObject } from '../api/object.ts';
import type { Subscribable } from '../engine/sources/from-subscription.ts';
import type { Credential, NotAcceptedCode, RejectedReportCode } from './core/key-state.ts';
import type { RunRecord, StoredRecord } from './core/run-record.ts';
import type { Entry, EntryRef } from './entry.ts';
import type { ComponentKey } from './key.ts';
import type { Registration } from './registration.ts';

/**
 * A change of an entry, as the watch reported it. `before`: the version that the watch reported earlier; undefined if there was none.
 * `gone`: `entry` is the last reported version.
 */
export type EntryChange =
  | { readonly kind: 'changed'; readonly entry: Entry; readonly before: Entry | undefined }
  | { readonly kind: 'gone'; readonly entry: Entry };

/** Reads and writes entries. Rejects like the client of kube/: with ApiError, TransportError, or the reason of the signal. */
export interface InventoryStore extends Required<Subscribable<EntryChange>> {
  /** The version that the watch last reported; undefined if the watch shows no such entry. */
  find(uid: string): Entry | undefined;
  list(): Iterable<Entry>;
  /** Reads the latest version live. Undefined if the entry was deleted or is invalid, or another entry has its name. */
  get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined>;
  /**
   * Sends a merge patch and resolves to the new version. Part `status` sends `patch` to the subresource; part `metadata` sends only
   * `patch.metadata`. Rejects with ApiError 409 `Conflict` if the stored object has another resourceVersion. Rejects with a plain Error if
   * the patch succeeded but the answer is not a valid entry.
   */
  patch(
    ref: EntryRef,
    part: 'metadata' | 'status',
    patch: Readonly<Record<string, unknown>>,
    options: { readonly resourceVersion: string; readonly signal: AbortSignal },
  ): Promise<Entry>;
}

/** A change of a record. A write by `swap` is reported only once the watch shows it; a removal by `remove` at once. */
export type RecordChange =
  | { readonly kind: 'changed'; readonly stored: StoredRecord }
  | { readonly kind: 'gone'; readonly key: ComponentKey };

/** Result of a compare-and-swap. */
export type Swap =
  | { readonly kind: 'stored'; readonly stored: StoredRecord }
  /** The stored record differs from the base; `stored` is undefined if it was removed or is invalid. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined };

/** Reads and writes the run records, one per key. Rejects like the client of kube/, except for a conflict in `swap`. */
export interface RunStore extends Required<Subscribable<RecordChange>> {
  /** The version that the watch last reported or this process last wrote, whichever is later; undefined if there is none. */
  find(key: ComponentKey): StoredRecord | undefined;
  /** Reads the record live; undefined if there is none, it is invalid, or the namespace of its entry is unknown. */
  load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  /**
   * Compare-and-swap. Creates the record if `base` is undefined. Of several writers with the same base and different records, at most one
   * gets `stored`. If the stored record already equals `next`, an earlier attempt succeeded, and the result is `stored`. If `base` is
   * undefined, also rejects with CodedError `NameTaken` if the name belongs to the record of another entry, or to an invalid record.
   */
  swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap>;
  /**
   * Removes this version of the record. Resolves if the record does not exist; rejects with ApiError 409 `Conflict` if another version is
   * stored.
   */
  remove(stored: StoredRecord, signal: AbortSignal): Promise<void>;
}

/** Result of a call to a component. */
export type Reply =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  /**
   * The component continues asynchronously and reports to the callback. `heartbeatTimeoutMs` undefined: the heartbeat timeout of the
   * registration applies.
   */
  | { readonly kind: 'accepted'; readonly heartbeatTimeoutMs: number | undefined }
  /** The component did not run. `Busy`: it answered 429 or 503. `Unreachable`: the server could not connect, or the endpoint is invalid. */
  | {
      readonly kind: 'notAccepted';
      readonly code: NotAcceptedCode;
      readonly message: string;
      readonly retryAfterMs?: number;
    }
  /** The server did not call the component, because it got no token for the call. The circuit breaker ignores this. */
  | { readonly kind: 'notCalled'; readonly message: string; readonly retryAfterMs?: number }
  /** The component may have run, but the answer is unusable. */
  | { readonly kind: 'failed'; readonly code: CallFailureCode; readonly message: string };

/** Stable codes of failed calls, in records, metrics, and logs. */
export type CallFailureCode =
  | 'Timeout'
  /** The connection ended before the answer did. */
  | 'Cut'
  /** The answer exceeds its size limit. */
  | 'TooLarge'
  /** The answer is not HTTP, or its body is not JSON that the server accepts. */
  | 'NotJson'
  /** The answer violates the contract. */
  | 'InvalidOutcome'
  /** The answer names another run. */
  | 'WrongRun'
  /** The component answered 400, 401, or 403. */
  | 'Refused'
  /** The component answered a status that the contract does not contain. */
  | 'UnexpectedStatus'
  /** The client threw an unexpected error. */
  | 'Crashed';

/** Calls components over HTTP or in this process. */
export interface ComponentClient {
  /**
   * Calls the component once, except for a retry after a closed kept-alive connection. Resolves within `timeoutMs` of the registration, not
   * counting a token request. Rejects with the reason of `signal`. The caller treats any other error as `Crashed`.
   */
  invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply>;
}

/** What a component receives for one run, in this process or over HTTP. */
export interface RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /**
   * The first call answers 202, so that the run continues asynchronously. Later calls report a heartbeat. `timeoutSeconds`: time until the
   * next report is due, an integer from 1 to 3,600 (`leaseSeconds` of the contract); default: `leaseSeconds` of the registration. Rejects
   * with the reason of `signal` if `signal` is aborted.
   */
  heartbeat(timeoutSeconds?: number): Promise<void>;
  /**
   * Aborts with CodedError `RunAbandoned` if the server closes an unanswered call, rejects a report, or accepts none before the deadline.
   * Also aborts when the component's own HTTP server stops. If an asynchronous run ends on the server's side, for example by `maxRunMs`,
   * `signal` aborts only when the component next reports.
   */
  readonly signal: AbortSignal;
}

/**
 * Reads and writes the entry with the token of the run. Rejects with ApiError, TransportError, or the reason of the run's signal. A 401, or
 * a 403 with the code `NoSuchRun` in its message, means that this token may not write, or may no longer write: usually the run has ended,
 * or the entry is being deleted. Stop writing, and end with an outcome. Another 403 means that a permission is missing or a rule is broken.
 */
export interface EntryAccessor {
  get(): Promise<KubeObject>;
  /** Sends `patch`, such as `{ status: { outputs } }`, to the subresource status. Write authorization and validation apply. */
  patch(patch: Readonly<Record<string, unknown>>): Promise<KubeObject>;
  /** Reads the Secret with the kubeconfig, if the component may read it. */
  kubeconfig(): Promise<KubeObject>;
  /** Writes a kubeconfig into that Secret, under `kubeconfigKey`, if the component is its producer. */
  writeKubeconfig(text: string): Promise<KubeObject>;
  /** Reads another Secret in the namespace of the entry, such as a supplied kubeconfig, if the component may read it. */
  secret(name: string): Promise<KubeObject>;
}

/**
 * A component in TypeScript. It must be stateless and idempotent: the server may call it again at any time, on any replica. A thrown error
 * counts as Retry.
 */
export interface Component {
  readonly name: string;
  reconcile(run: RunContext): Promise<Outcome>;
}

/** Answer to a report; `status` is the HTTP status. */
export type ReportAnswer =
  /**
   * The report was accepted. A repeated outcome is accepted, too, but counts once. `extension`: only for a heartbeat. `rejection`: why the
   * server ended the run with another outcome, for example because it rejected the outputs; undefined if it did not.
   */
  | {
      readonly status: 200;
      readonly extension: RunExtension | undefined;
      readonly rejection?: { readonly code: string; readonly message: string } | undefined;
    }
  /** The report violates the contract. */
  | { readonly status: 400; readonly code: 'InvalidReport'; readonly message: string }
  /**
   * The token does not belong to the run, or has expired. Also the answer to a heartbeat once the entry is being deleted: the run may no
   * longer write, but may still report its outcome.
   */
  | { readonly status: 403; readonly code: 'ForeignCredential'; readonly message: string }
  /**
   * The run has ended, used up `maxRunMs`, or was replaced by a later one. `OutcomeDiffers`: an earlier report, which differs from this
   * one, ended the run.
   */
  | { readonly status: 409; readonly code: 'RunOver' | 'OutcomeDiffers'; readonly message: string }
  /** This replica is not the leader, or cannot store the report now. The component must report again. */
  | { readonly status: 503; readonly code: 'NotLeading' | 'Unavailable'; readonly message: string };

/** Receives the reports of asynchronous runs: from the callback listener, and from components in this process. */
export interface ReportSink {
  /** `body` is parsed and untrusted. `credentialId` is the ID of the authenticated token. Never rejects. */
  report(run: ComponentKey & { readonly seq: number }, credentialId: string, body: unknown): Promise<ReportAnswer>;
  /** Records that a report was rejected before `report`, because its body is too large or is not valid JSON. Never rejects. */
  rejected(run: ComponentKey & { readonly seq: number }, credentialId: string, code: RejectedReportCode): Promise<void>;
}

/**
 * Creates and removes the objects that grant components access to an entry. Rejects like the client of kube/. `prepare` also rejects with
 * CodedError `NameTaken` if an object already exists under a name that `prepare` needs, and the server may not or cannot use that object.
 */
export interface EntryAccess {
  /**
   * Creates the ServiceAccounts, Roles, and RoleBindings of the components, and corrects existing Roles and RoleBindings. If a component
   * reads or produces the kubeconfig, also creates the empty Secret for it. Idempotent.
   */
  prepare(entry: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void>;
  /**
   * Deletes the RoleBindings first, then the Roles, accounts, and Secret, if the entry owns them. Afterwards the accounts of
   * the entry have no permission through these objects, even if a finalizer keeps a RoleBinding: the server then removes its subjects.
   * Idempotent.
   */
  withdraw(ref: EntryRef, signal: AbortSignal): Promise<void>;
  /** Removes one component from the RoleBindings and deletes its account. The Roles and the Secret stay. */
  deleteAccount(ref: EntryRef, component: string, signal: AbortSignal): Promise<void>;
}

/** Proves that the API server enforces write authorization of components. */
export interface AuthorizationProof {
  /**
   * Whether the webhook has denied, with `NoSuchRun`, a dry-run write whose token belongs to no run. Until then, the server starts no run.
   */
  readonly proved: boolean;
  /** Retries until write authorization is proved or `signal` aborts, then resolves. Never rejects. */
  prove(signal: AbortSignal): Promise<void>;
}

/** Authenticates tokens by TokenReview. Rejects like the client of kube/. */
export interface TokenReader {
  /**
   * User name of the account and credential ID of a token; undefined if the token is invalid or does not have exactly one credential ID.
   */
  read(
    token: string,
    signal: AbortSignal,
  ): Promise<{ readonly account: string; readonly credentialId: string } | undefined>;
}

/** A token that the API server issued for a run, for calls to a component, or for the proof of write authorization. */
export interface IssuedToken extends Credential {
  readonly token: string;
}

/** Requests tokens from the API server. The server keeps them only in memory. Rejects like the client of kube/. */
export interface TokenIssuer {
  /**
   * Issues the token of a run, which gives access only to this entry and its Secrets. Creates the account and its grants on first use, and
   * waits until they are in force. Write authorization checks the credential ID, so the record must contain it before the component gets
   * the token. Also rejects with CodedError `NameTaken`, `GrantNotInForce`, or `NoCredentialId`.
   */
  forRun(entry: Entry, registration: Registration, signal: AbortSignal): Promise<IssuedToken>;
  /**
   * Issues a token that authenticates the server to one component. Calls share it until at most 3 minutes of its lifetime remain. Callers
   * also share a pending request: if `signal` aborts, this call rejects with its reason, and the request continues for the others. Also
   * rejects with CodedError `NoCredentialId`.
   */
  forCall(component: string, signal: AbortSignal): Promise<string>;
}

/** A possible change of an object that a component watches for an entry. */
export interface RemoteEvent {
  readonly entryUid: string;
  readonly component: string;
  /** What may have changed, for the trigger reason, such as `managed/services.example.org`. */
  readonly detail: string;
}

/** The remote watches that a component registered. */
export interface ComponentWatches {
  readonly component: string;
  readonly watches: readonly RemoteWatch[];
}

/** Watches objects outside the inventory, by entry. */
export interface RemoteWatcher {
  /**
   * Replaces the watches of an entry. Reconnects to the managed cluster if the kubeconfig has a new version. Without a published
   * kubeconfig, does not watch the managed cluster.
   */
  setWatches(entry: Entry, wanted: readonly ComponentWatches[]): void;
  /** Ends the watches of an entry. */
  forget(entryUid: string): void;
  /**
   * Calls the listener after a change of the part of an object that a watch selects (`fields`), and after a possible change while a watch
   * was down. Returns a function that unsubscribes.
   */
  subscribe(listener: (event: RemoteEvent) => void): () => void;
  /** Why the watches of the managed cluster are unhealthy; undefined if they are healthy, or the entry has none. */
  problem(entryUid: string): string | undefined;
  /** Calls the listener when `problem` of an entry changes. */
  onHealth(listener: (entryUid: string) => void): () => void;
  close(): Promise<void>;
}
