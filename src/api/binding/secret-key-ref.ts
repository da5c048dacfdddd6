import { type Static, Type } from 'typebox';
import { immutable } from './group-resource.ts';

const key = { description: 'The key in the Secret.', maxLength: 253 };
const name = Type.String({ description: 'The name of the Secret.', minLength: 1, maxLength: 253 });
const namespace = Type.String({ description: 'The namespace of the Secret.', minLength: 1, maxLength: 253 });

const options = {
  description: 'The Secret that holds the kubeconfig of the provider cluster.',
  ...immutable('kubeconfigSecretRef'),
};

/** `spec.kubeconfigSecretRef` of APIServiceBindings and bundles, which are cluster-scoped. */
export const secretKeyRef = Type.Object({ name, key: Type.String(key), namespace }, options);

/** A key of a Secret in any namespace. */
export type SecretKeyRef = Static<typeof secretKeyRef>;

/** `spec.kubeconfigSecretRef` of v1alpha1 APIServiceBindings. `kubeconfig` is the only allowed key. */
export const v1alpha1SecretKeyRef = Type.Object(
  { name, key: Type.Union([Type.Literal('kubeconfig')], key), namespace },
  options,
);

/** `spec.kubeconfigSecretRef` of ClusterBindings. The Secret is in the namespace of the ClusterBinding. */
export const localSecretKeyRef = Type.Object({ name, key: Type.String(key) }, options);
