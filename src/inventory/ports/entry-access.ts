import type { Entry, EntryRef } from '../entry.ts';
import type { Registration } from '../registration.ts';

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
export interface FenceProof {
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
