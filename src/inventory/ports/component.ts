import type { Outcome } from '../../api/inventory/contract/outcome.ts';
import type { ReconcileRequest } from '../../api/inventory/contract/request.ts';
import type { KubeObject } from '../../api/object.ts';

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
