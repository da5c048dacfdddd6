import type { RemoteWatch } from '../api/inventory/component-reconciler.ts';
import type { Outcome } from '../api/inventory/contract/outcome.ts';
import type { RunExtension } from '../api/inventory/contract/report.ts';
import type { ReconcileRequest } from '../api/inventory/contract/request.ts';
import type { KubeObject } from '../api/object.ts';
import type { Subscribable } from '../engine/sources/from-subscription.ts';
import type { RunRecord, StoredRecord } from './core/run-record.ts';
import type { Credential } from './core/step.ts';
import type { Entry, EntryRef } from './entry.ts';
import type { ComponentKey } from './key.ts';
import type { Registration } from './registration.ts';

export type EntryChange =
  | { readonly kind: 'changed'; readonly entry: Entry; readonly before: Entry | undefined }
  | { readonly kind: 'gone'; readonly entry: Entry };

/** Reads and writes entries. Rejects like the client of kube/: ApiError, TransportError. */
export interface InventoryStore extends Required<Subscribable<EntryChange>> {
  /** The version that the watch last reported. */
  find(uid: string): Entry | undefined;
  list(): Iterable<Entry>;
  /** Reads the latest version live. Undefined if the entry is gone or another entry has its name. */
  get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined>;
  /**
   * Sends a merge patch. Rejects with Conflict if the stored UID differs from `ref.uid`, or the stored version differs from a given
   * `resourceVersion`. Part `status` is the subresource.
   */
  patch(
    ref: EntryRef,
    part: 'metadata' | 'status',
    patch: Readonly<Record<string, unknown>>,
    options: { readonly resourceVersion?: string; readonly signal: AbortSignal },
  ): Promise<Entry>;
}

export type RecordChange =
  | { readonly kind: 'changed'; readonly stored: StoredRecord }
  | { readonly kind: 'gone'; readonly key: ComponentKey };

/** Result of a compare-and-swap. */
export type Swap =
  | { readonly kind: 'stored'; readonly stored: StoredRecord }
  /** The stored record differs from the base; undefined if it is gone. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined };

/** Reads and writes the run records, one per key. Rejects like the client of kube/. */
export interface RunStore extends Required<Subscribable<RecordChange>> {
  /** The version that this process last watched or wrote, whichever is later. */
  find(key: ComponentKey): StoredRecord | undefined;
  /** Reads the record live; undefined if there is none. */
  load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  /** Compare-and-swap. Creates the record if `base` is undefined. Of several writers with the same base, exactly one gets `stored`. */
  swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap>;
  /** Resolves if the record is already gone. */
  remove(stored: StoredRecord, signal: AbortSignal): Promise<void>;
}

/** Result of a call to a component. */
export type Reply =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  /** The component continues asynchronously and reports to the callback. `leaseMs` undefined: the default of the registration applies. */
  | { readonly kind: 'accepted'; readonly leaseMs: number | undefined }
  /** The component did not run: it answered 429 or 503, or the server could not reach it. */
  | {
      readonly kind: 'notAccepted';
      readonly code: 'Busy' | 'Unreachable';
      readonly message: string;
      readonly retryAfterMs?: number;
    }
  /** The server did not call the component. The circuit breaker ignores this. */
  | { readonly kind: 'notCalled'; readonly message: string; readonly retryAfterMs?: number }
  /** The component may have run, but the answer is unusable. */
  | { readonly kind: 'failed'; readonly code: CallFailureCode; readonly message: string };

/** Stable codes of failed calls, in records, metrics, and logs. */
export type CallFailureCode =
  | 'Timeout'
  | 'Cut'
  | 'TooLarge'
  | 'NotJson'
  | 'InvalidOutcome'
  | 'WrongRun'
  | 'Refused'
  | 'UnexpectedStatus'
  | 'Crashed';

/** Calls components over HTTP or in this process. */
export interface ComponentClient {
  /** Resolves within `timeoutMs` of the registration, not counting a token request. Rejects only if `signal` aborts. */
  invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply>;
}

/** What a component receives for one run, in this process or over HTTP. */
export interface RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /**
   * The first call answers 202, so that the run continues asynchronously. Later calls report a heartbeat. `leaseSeconds` is the heartbeat
   * timeout in seconds; default: that of the registration.
   */
  heartbeat(leaseSeconds?: number): Promise<void>;
  /** Aborts when the server no longer waits for the outcome. */
  readonly signal: AbortSignal;
}

/** Reads and writes the entry with the token of the run. Rejects like the client of kube/. */
export interface EntryAccessor {
  get(): Promise<KubeObject>;
  /** Sends a merge patch of `/status`. Write authorization and validation apply as for every component. */
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
  /** The report was accepted. A repeated outcome is accepted once. */
  | { readonly status: 200; readonly extension: RunExtension | undefined }
  /** The report violates the contract. */
  | { readonly status: 400; readonly code: 'InvalidReport'; readonly message: string }
  /** The token does not belong to the run. */
  | { readonly status: 403; readonly code: 'ForeignCredential'; readonly message: string }
  /** The run has ended, or a later run replaced it. `OutcomeDiffers`: it ended with another outcome. */
  | { readonly status: 409; readonly code: 'RunOver' | 'OutcomeDiffers'; readonly message: string }
  /** This replica is not the leader, or cannot store the report now. The component must report again. */
  | { readonly status: 503; readonly code: 'NotLeading' | 'Unavailable'; readonly message: string };

/** Receives the reports of asynchronous runs: from the callback listener, and from components in this process. */
export interface ReportSink {
  /** `body` is parsed and untrusted. `credentialId` is the ID of the authenticated token. Never rejects. */
  report(run: ComponentKey & { readonly seq: number }, credentialId: string, body: unknown): Promise<ReportAnswer>;
}

/** Creates and removes the objects that grant components access to an entry. */
export interface EntryAccess {
  /** Creates the ServiceAccounts, their grants, and the empty Secret for the kubeconfig. Idempotent. */
  prepare(entry: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void>;
  /**
   * Deletes the RoleBindings first, then the Roles, accounts, and Secret. Afterwards no token of the entry has permissions. Idempotent.
   */
  withdraw(ref: EntryRef, signal: AbortSignal): Promise<void>;
  /** Withdraws the access of one component. */
  withdrawFrom(ref: EntryRef, component: string, signal: AbortSignal): Promise<void>;
}

/** Proves that the API server enforces write authorization of components. */
export interface AuthorizationProof {
  /** True after the webhook rejected, with our code, a dry-run write by a token without a run. Until then, the server starts no run. */
  readonly proved: boolean;
  /** Retries until it is proved or `signal` aborts. */
  prove(signal: AbortSignal): Promise<void>;
}

/** Authenticates tokens by TokenReview. */
export interface TokenReader {
  /** The account and credential ID of a token; undefined if the token is invalid. */
  read(
    token: string,
    signal: AbortSignal,
  ): Promise<{ readonly account: string; readonly credentialId: string } | undefined>;
}

/** A token of a run, or of calls to a component. */
export interface RunToken extends Credential {
  readonly token: string;
}

/** Requests tokens from the API server. The server never stores them. Rejects like the client of kube/. */
export interface TokenIssuer {
  /**
   * Issues the token of a run, which opens only this entry and its Secrets. Creates the account and its grants on first use, and waits
   * until they are in force. Write authorization checks the credential ID, so the record must contain it before the component gets the
   * token.
   */
  forRun(entry: Entry, registration: Registration, signal: AbortSignal): Promise<RunToken>;
  /** Issues a token that authenticates the server to one component. Calls share it until less than 3 minutes of its lifetime remain. */
  forCall(component: string, signal: AbortSignal): Promise<string>;
}

/** A possible change of an object that a component watches for an entry. */
export interface RemoteEvent {
  readonly entryUid: string;
  readonly component: string;
  /** Details for the trigger reason, such as `managed/services.example.org`. */
  readonly about: string;
}

/** The remote watches that a component registered. */
export interface ComponentWatches {
  readonly component: string;
  readonly watches: readonly RemoteWatch[];
}

/** Watches of objects outside the inventory, by entry. */
export interface RemoteEvents {
  /** Replaces the watches of an entry. Reconnects if its kubeconfig has a new version. */
  setWatches(entry: Entry, wanted: readonly ComponentWatches[]): void;
  /** Ends the watches of an entry. */
  forget(entryUid: string): void;
  /** Reports changes of watched objects, including possible changes while a watch was down. */
  subscribe(listener: (event: RemoteEvent) => void): () => void;
  /** Why the watches of the managed cluster are unhealthy; undefined if they are healthy. */
  problem(entryUid: string): string | undefined;
  /** Calls the listener when `problem` of an entry changes. */
  onHealth(listener: (entryUid: string) => void): () => void;
  close(): Promise<void>;
}
