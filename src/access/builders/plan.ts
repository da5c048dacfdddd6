import type { GrantedRule, GrantSubject } from '../../api/access/grant.ts';
import type { KubeObject } from '../../api/object.ts';
import type { Violation } from '../policy/policy.ts';

/** Everything that a grant will create, decided before anything is. Pure data: the same input gives the same plan and hash. */
export interface Plan {
  /** The pod that the grant opens; `uid` is set when it exists already (ExecAccess: pinned). */
  readonly target: { readonly name: string; readonly uid?: string };
  /** Who is let in; never empty. */
  readonly subjects: GrantSubject[];
  /** What they may do, as the Role says it: on the one pod alone. */
  readonly rules: GrantedRule[];
  /** PodAccess only: the Pod to create. */
  readonly pod?: KubeObject;
  readonly role: KubeObject;
  readonly roleBinding: KubeObject;
  /** sha256 (hex) over the children without the hash annotation itself; also in their annotation `access.drawbridge.dev/plan-hash`. */
  readonly hash: string;
  /** What was lowered to the template's caps, one clause each, for the condition; absent when nothing was. */
  readonly notes?: readonly string[];
}

/** A builder either plans or says, terminally, why the template and request cannot be turned into objects. */
export type Planned = { readonly plan: Plan } | { readonly refusal: Violation };
