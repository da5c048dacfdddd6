import type { TSchemaOptions } from 'typebox';
import { Type } from 'typebox';

const key = { description: 'The key in the Secret.', maxLength: 253 };
const name = Type.String({ description: 'The name of the Secret.', minLength: 1, maxLength: 253 });
const namespace = Type.String({ description: 'The namespace of the Secret.', minLength: 1, maxLength: 253 });

const fixed: TSchemaOptions = {
  description: 'The Secret that holds the kubeconfig of the provider cluster.',
  'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'kubeconfigSecretRef cannot change' }],
};

/** Of bindings and bundles, which are cluster-scoped. */
export const secretKeyRef = Type.Object({ name, key: Type.String(key), namespace }, fixed);

/** As version v1alpha1 has it: `kubeconfig` is the only key. */
export const oldSecretKeyRef = Type.Object(
  { name, key: Type.Union([Type.Literal('kubeconfig')], key), namespace },
  fixed,
);

/** Of ClusterBindings: in their own namespace. */
export const localSecretKeyRef = Type.Object({ name, key: Type.String(key) }, fixed);
