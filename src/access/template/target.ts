import type { AccessConfig } from '../../api/access/access-config.ts';
import type { ControllerTargetRef } from '../../api/access/controller-target-ref.ts';

/** The part of both templates' specs that says who may ask and which workload it is about. */
export interface TargetedSpec {
  readonly accessConfig: AccessConfig;
  readonly controllerTargetRef?: ControllerTargetRef | undefined;
}

/** `Deployment/payments/web`: one workload among all kinds, and the index value under which its templates are found. */
export function targetKey(target: { readonly kind: string; readonly name: string }, namespace: string): string {
  return `${target.kind}/${namespace}/${target.name}`;
}
