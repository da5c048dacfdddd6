import { type Static, Type } from 'typebox';
import { oneOf } from '../schema/fields.ts';
import { immutable } from './group-resource.ts';

const key = { description: 'The key in the Secret.', maxLength: 253 };
const name = Type.String({ description: 'The name of the Secret.', minLength: 1, maxLength: 253 });
const namespace = Type.String({ description: 'The namespace of the Secret.', minLength: 1, maxLength: 253 });

const options = {
  description: 'The Secret with the kubeconfig of the provider cluster.',
  ...immutable('kubeconfigSecretRef'),
};

/** Of APIServiceBindings and bundles, which are cluster-scoped. */
export const secretKeyRef = Type.Object({ name, key: Type.String(key), namespace }, options);

/** In any namespace. */
export type SecretKeyRef = Static<typeof secretKeyRef>;

/** Of v1alpha1 APIServiceBindings. `kubeconfig` is the only allowed key. */
export const v1alpha1SecretKeyRef = Type.Object({ name, key: oneOf(['kubeconfig'], key), namespace }, options);

/** Of ClusterBindings. The Secret is in their namespace. */
export const localSecretKeyRef = Type.Object({ name, key: Type.String(key) }, options);
