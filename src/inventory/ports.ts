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

/** The entries, wherever they are kept. Rejects as the client of kube/ does: ApiError, TransportError. */
export interface InventoryStore extends Required<Subscribable<EntryChange>> {
  /** As last watched. */
  find(uid: string): Entry | undefined;
  list(): Iterable<Entry>;
  /** The latest, read live; undefined when it is gone or another one has its name. */
  get(ref: EntryRef, signal: AbortSignal): Promise<Entry | undefined>;
  /**
   * A merge patch, refused with Conflict when `ref.uid` is not the one there, or `resourceVersion` is given and another is stored.
   * Part `status` is the subresource.
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

export type Swap =
  | { readonly kind: 'stored'; readonly stored: StoredRecord }
  /** It is not what it was taken for; undefined: it is gone. */
  | { readonly kind: 'conflict'; readonly stored: StoredRecord | undefined };

/** The records, one a key. Rejects as the client of kube/ does. */
export interface RunStore extends Required<Subscribable<RecordChange>> {
  /** As last watched or written by us, whichever is later; its history may be left out. */
  find(key: ComponentKey): StoredRecord | undefined;
  load(key: ComponentKey, signal: AbortSignal): Promise<StoredRecord | undefined>;
  /** Compare and swap: creates when `base` is undefined. Of several writers with one base, one is `stored`. */
  swap(next: RunRecord, base: StoredRecord | undefined, signal: AbortSignal): Promise<Swap>;
  /** Gone already counts as removed. */
  remove(stored: StoredRecord, signal: AbortSignal): Promise<void>;
}

/** What came of a call. */
export type Reply =
  | { readonly kind: 'outcome'; readonly outcome: Outcome }
  /** It goes on, and reports to the callback; undefined: for as long as the registration says. */
  | { readonly kind: 'accepted'; readonly leaseMs: number | undefined }
  /** It certainly has not begun: 429, 503, or no connection. */
  | {
      readonly kind: 'notAccepted';
      readonly code: 'Busy' | 'Unreachable';
      readonly message: string;
      readonly retryAfterMs?: number;
    }
  /** It was not called, for a reason of our own: that says nothing of its endpoint. */
  | { readonly kind: 'notCalled'; readonly message: string; readonly retryAfterMs?: number }
  /** It may have happened, and nothing can be made of it. */
  | { readonly kind: 'broken'; readonly code: CallFailureCode; readonly message: string };

/** Stable: in records, metrics and logs. */
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

/** Calls components, over HTTP or in this process. */
export interface ComponentClient {
  /** Ends within the registration's timeout. Rejects only when `signal` aborts. */
  invoke(registration: Registration, request: ReconcileRequest, signal: AbortSignal): Promise<Reply>;
}

/** What a component gets for one run; the same in this process and behind HTTP. */
export interface RunContext {
  readonly request: ReconcileRequest;
  readonly entry: EntryAccessor;
  /** Says 202 when called before an answer was given, and reports from then on. In seconds; default: as registered. */
  heartbeat(leaseSeconds?: number): Promise<void>;
  /** Aborts when nobody waits for the outcome any more. */
  readonly signal: AbortSignal;
}

/** The entry, with the token of the run. */
export interface EntryAccessor {
  get(): Promise<KubeObject>;
  /** A merge patch of `/status`, fenced and checked like that of anybody else. */
  patch(patch: Readonly<Record<string, unknown>>): Promise<KubeObject>;
  /** The Secret of the kubeconfig, where the component may read it. */
  kubeconfig(): Promise<KubeObject>;
  /** Puts a kubeconfig into that Secret, under `kubeconfigKey`, where the component is its producer. */
  writeKubeconfig(text: string): Promise<KubeObject>;
  /** Another Secret beside the entry: a supplied kubeconfig, where the component may read it. */
  secret(name: string): Promise<KubeObject>;
}

/** A component reconciler in TypeScript. Stateless: it may be called anywhere, at any time, again. What it throws counts as Retry. */
export interface Component {
  readonly name: string;
  reconcile(run: RunContext): Promise<Outcome>;
}

/** What whoever reports is told; `status` is that of HTTP. */
export type ReportAnswer =
  /** Taken, or known already: the same outcome twice is taken once. */
  | { readonly status: 200; readonly extension: RunExtension | undefined }
  /** Not what the contract says. */
  | { readonly status: 400; readonly code: 'InvalidReport'; readonly message: string }
  /** Not by the credential of that run. */
  | { readonly status: 403; readonly code: 'ForeignCredential'; readonly message: string }
  /** The run is over, was replaced, or has ended otherwise. */
  | { readonly status: 409; readonly code: 'RunOver' | 'OutcomeDiffers'; readonly message: string }
  /** This replica does not lead, or cannot store it now: report again. */
  | { readonly status: 503; readonly code: 'NotLeading' | 'Unavailable'; readonly message: string };

/** Where reports of runs that go on arrive: from the callback listener, and from components in this process. */
export interface ReportSink {
  /** `body` is parsed and hostile; `credentialId` is that of the token that came with it, already proved. Never rejects. */
  report(run: ComponentKey & { readonly seq: number }, credentialId: string, body: unknown): Promise<ReportAnswer>;
}

/** What exists in the cluster for the access of components to an entry, and its end. */
export interface EntryAccess {
  /** The Secret for the kubeconfig, empty until its producer fills it. Idempotent. */
  prepare(entry: Entry, registrations: readonly Registration[], signal: AbortSignal): Promise<void>;
  /** RoleBindings first, then Roles, accounts and the Secret; afterwards no token of the entry opens anything. Idempotent. */
  withdraw(ref: EntryRef, signal: AbortSignal): Promise<void>;
  /** Of one component of it. */
  withdrawFrom(ref: EntryRef, component: string, signal: AbortSignal): Promise<void>;
}

/** Whether writes of components are known to be fenced. */
export interface AuthorizationProof {
  /** True once a dry-run write by a token that holds no run was refused with our own code. Nothing is dispatched before. */
  readonly proved: boolean;
  /** Tries until it is proved or `signal` aborts. */
  prove(signal: AbortSignal): Promise<void>;
}

/** Who reports: the account and the id of the credential of a token, by TokenReview; undefined for one that is not good. */
export interface TokenReader {
  read(
    token: string,
    signal: AbortSignal,
  ): Promise<{ readonly account: string; readonly credentialId: string } | undefined>;
}

export interface RunToken extends Credential {
  readonly token: string;
}

/** Tokens. Signed, never stored. Rejects as the client of kube/ does. */
export interface TokenIssuer {
  /**
   * For one run: reads and updates this entry alone. Makes the account and its grants on first need and waits until they are in
   * force. `id` is what the fence will see, known before anybody has the token.
   */
  forRun(entry: Entry, registration: Registration, signal: AbortSignal): Promise<RunToken>;
  /** Proves to a component that we call, and to nobody else anything. Shared by calls until near its end. */
  forCall(component: string, signal: AbortSignal): Promise<string>;
}

export interface RemoteEvent {
  readonly entryUid: string;
  readonly component: string;
  /** `managed/services.example.org`, for the reason of the run. */
  readonly about: string;
}

export interface ComponentWatches {
  readonly component: string;
  readonly watches: readonly RemoteWatch[];
}

/** Watches outside of the inventory, by entry. */
export interface RemoteEvents {
  /** From now on exactly these for the entry; opened again when its kubeconfig has a new version. */
  setWatches(entry: Entry, wanted: readonly ComponentWatches[]): void;
  forget(entryUid: string): void;
  /** Something that a component watches has changed, or may have while nobody looked. */
  subscribe(listener: (event: RemoteEvent) => void): () => void;
  /** Why the watches of an entry's own cluster are not to be relied on; undefined when they are. `onHealth` tells of changes. */
  problem(entryUid: string): string | undefined;
  onHealth(listener: (entryUid: string) => void): () => void;
  close(): Promise<void>;
}
