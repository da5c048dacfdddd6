import type { RemoteWatch } from '../api/inventory/component-reconciler.ts';
import type { Outcome } from '../api/inventory/contract/outcome.ts';
import type { RunExtension } from '../api/inventory/contract/report.ts';
import type { ReconcileRequest } from '../api/inventory/contract/request.ts';
import type { Subscribable } from '../engine/sources/from-subscription.ts';
import type { NotAcceptedCode, RejectedReportCode, RunToken } from './core/memory.ts';
import type { RunRecord, StoredRecord } from './core/run-record.ts';
import type { Entry, EntryRef } from './entry.ts';
import type { ComponentKey } from './key.ts';
import type { Registration } from './registration.ts';

/** `before`: the version that the watch reported earlier, if any. `gone`: `entry` is the last. */
export type EntryChange =
  | { readonly kind: 'changed'; readonly entry: Entry; readonly before: Entry | undefined }
  | { readonly kind: 'gone'; readonly entry: Entry };

/** Reads and writes entries. Rejects like the client of kube/. */
export interface InventoryStore extends Required<Subscribable<EntryChange>> {
  /** The version that the watch last reported. */
  find(uid: string): Entry | undefined;
  list(): Iterable<Entry>;
  /** Reads live. Undefined also if the entry is invalid, or another entry has its name. */
  get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined>;
  /**
   * Merge patch: of part `metadata` only `patch.metadata`. Rejects with 409 `Conflict` for another
   * resourceVersion, and with a plain Error for an invalid answer.
   */
  patch(
    ref: EntryRef,
    part: 'metadata' | 'status',
    patch: Readonly<Record<string, unknown>>,
    options: { readonly resourceVersion: string; readonly signal: AbortSignal },
  ): Promise<Entry>;
}

/** A write by `swap` is reported once the watch shows it, a removal by `remove` at once. */
export type RecordChange =
  | { readonly kind: 'changed'; readonly stored: StoredRecord }
  | { readonly kind: 'gone'; readonly key: ComponentKey };

export type Swap =
  | { readonly kind: 'stored'; readonly stored: StoredRecord }
  /** `stored` differs from the base; undefined if it was removed or is invalid. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined };

/** Reads and writes the run records, one per key. Rejects like the client of kube/. */
export interface RunStore extends Required<Subscribable<RecordChange>> {
  /** The version that the watch last reported or this process last wrote, whichever is later. */
  find(key: ComponentKey): StoredRecord | undefined;
  /** Reads live. Undefined also if the record is invalid, or its entry's namespace unknown. */
  load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  /**
   * Creates without `base`. One of several writers gets `stored`, unless they write the same. A
   * create rejects with `NameTaken` if another entry's or an invalid record has the name.
   */
  swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap>;
  /** Resolves also if there is no record. Rejects with 409 `Conflict` for another version. */
  remove(stored: StoredRecord, signal: AbortSignal): Promise<void>;
}

export type Reply =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  /** The component continues and reports to the callback. Default timeout: the registration's. */
  | { readonly kind: 'accepted'; readonly heartbeatTimeoutMs: number | undefined }
  /** The component did not run: it was `Busy` (429 or 503), or `Unreachable`. */
  | {
      readonly kind: 'notAccepted';
      readonly code: NotAcceptedCode;
      readonly message: string;
      readonly retryAfterMs?: number;
    }
  /** The server got no token for the call, so it made none. The circuit breaker ignores this. */
  | { readonly kind: 'notCalled'; readonly message: string; readonly retryAfterMs?: number }
  /** The component may have run, but the answer is unusable. */
  | { readonly kind: 'failed'; readonly code: CallFailureCode; readonly message: string };

/** Stable codes of failed calls, in records, metrics, and logs. */
export type CallFailureCode =
  | 'Timeout'
  /** The connection ended before the answer did. */
  | 'Cut'
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
  | 'Crashed';

export interface ComponentClient {
  /**
   * Calls once (twice after a closed kept-alive connection), within `timeoutMs` plus a token
   * request. Rejects with the reason of `signal`; any other error counts as `Crashed`.
   */
  invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply>;
}

/** Answer to a report; `status` is the HTTP status. */
export type ReportAnswer =
  /**
   * Accepted. A repeated outcome counts once. `rejection`: why the server ended the run with
   * another outcome, for example because it rejected the outputs.
   */
  | {
      readonly status: 200;
      readonly extension: RunExtension | undefined;
      readonly rejection?: { readonly code: string; readonly message: string } | undefined;
    }
  | { readonly status: 400; readonly code: 'InvalidReport'; readonly message: string }
  /**
   * Not the token of this run, or expired. Also for a heartbeat once the entry is being deleted:
   * the run may then only report its outcome.
   */
  | { readonly status: 403; readonly code: 'ForeignCredential'; readonly message: string }
  /** The run ended or used up `maxRunMs`. `OutcomeDiffers`: another report ended it. */
  | { readonly status: 409; readonly code: 'RunOver' | 'OutcomeDiffers'; readonly message: string }
  /** Not the leader, or the report cannot be stored now. The component must report again. */
  | { readonly status: 503; readonly code: 'NotLeading' | 'Unavailable'; readonly message: string };

/** Receives the reports of asynchronous runs from the callback listener. */
export interface ReportSink {
  /** `body` is untrusted JSON; `credentialId` is authenticated. Never rejects. */
  report(run: ComponentKey & { readonly seq: number }, credentialId: string, body: unknown): Promise<ReportAnswer>;
  /** A report whose body was too large or not JSON. Never rejects. */
  rejected(run: ComponentKey & { readonly seq: number }, credentialId: string, code: RejectedReportCode): Promise<void>;
}

/**
 * Manages the objects that grant components access to an entry. Rejects like the client of kube/;
 * `prepare` also with CodedError `NameTaken` if an object that it may not use has the name.
 */
export interface EntryAccess {
  /**
   * Creates or corrects ServiceAccounts, Roles, RoleBindings, and, if needed, the Secret for the
   * kubeconfig. Idempotent.
   */
  prepare(entry: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void>;
  /**
   * Deletes what the entry owns, RoleBindings first. Afterwards its accounts have no permission
   * through them, even if a finalizer keeps one. Idempotent.
   */
  withdraw(ref: EntryRef, signal: AbortSignal): Promise<void>;
  /** Removes one component from the RoleBindings and deletes its account. Roles and Secret stay. */
  deleteAccount(ref: EntryRef, component: string, signal: AbortSignal): Promise<void>;
}

/** Proves that the API server enforces write authorization. No run starts before that. */
export interface AuthorizationProof {
  /** Whether the webhook denied, with `NoSuchRun`, a dry-run write by a token without a run. */
  readonly proved: boolean;
  /** Retries until proved or aborted, then resolves. Never rejects. */
  prove(signal: AbortSignal): Promise<void>;
}

/** Authenticates tokens by TokenReview. Rejects like the client of kube/. */
export interface TokenReader {
  /** Undefined if the token is invalid or does not have exactly one credential ID. */
  read(
    token: string,
    signal: AbortSignal,
  ): Promise<{ readonly account: string; readonly credentialId: string } | undefined>;
}

export type IssuedToken = RunToken;

/** Requests tokens, kept only in memory. Rejects like the client of kube/. */
export interface TokenIssuer {
  /**
   * The token of a run, for this entry and its Secrets only. Store its ID in the record before the
   * component gets it. Also rejects with `NameTaken`, `GrantNotInForce`, or `NoCredentialId`.
   */
  forRun(entry: Entry, registration: Registration, signal: AbortSignal): Promise<IssuedToken>;
  /**
   * A token that authenticates the server to one component, shared by calls until 3 minutes of its
   * lifetime remain. Also rejects with CodedError `NoCredentialId`.
   */
  forCall(component: string, signal: AbortSignal): Promise<string>;
}

export interface RemoteEvent {
  readonly entryUid: string;
  readonly component: string;
  /** What may have changed, for the trigger reason, such as `managed/services.example.org`. */
  readonly detail: string;
}

export interface ComponentWatches {
  readonly component: string;
  readonly watches: readonly RemoteWatch[];
}

/** Watches objects outside the inventory for entries. */
export interface RemoteWatcher {
  /** Replaces the watches of an entry. Reconnects to the managed cluster for a new kubeconfig. */
  setWatches(entry: Entry, wanted: readonly ComponentWatches[]): void;
  forget(entryUid: string): void;
  /** Reports a change of what a watch selects (`fields`), and a possible one while it was down. */
  subscribe(listener: (event: RemoteEvent) => void): () => void;
  /** Why the watches of the managed cluster are unhealthy, if they are. */
  problem(entryUid: string): string | undefined;
  onHealth(listener: (entryUid: string) => void): () => void;
  close(): Promise<void>;
}
