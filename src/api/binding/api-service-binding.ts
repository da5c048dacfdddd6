import { Type } from 'typebox';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { bindConditionList, readyColumn } from './condition.ts';
import { groupResourceFields } from './group-resource.ts';
import { apiServiceBindings } from './names.ts';
import { permissionClaims } from './permission-claim.ts';
import { secretKeyRef, v1alpha1SecretKeyRef } from './secret-key-ref.ts';

const specText = {
  description: 'The provider to bind.',
};
const statusText = { description: 'The state of this binding.' };

const v1alpha1Status = {
  providerPrettyName: Type.Optional(Type.String({ description: 'The display name of the provider.', maxLength: 4096 })),
  conditions: Type.Optional(bindConditionList),
};

/** Of bindings and bundles. `Provider` is empty for a bundle, whose status names none. */
export const bindingColumns = [
  column('Provider', '.status.providerPrettyName', 'The display name of the provider.'),
  column(
    'Resources',
    '.metadata.annotations.kube-bind\\.io/resources',
    'The annotation kube-bind.io/resources, in which the creator of the binding may describe the bound resources.',
    { priority: 1 },
  ),
  readyColumn,
  column('Message', '.status.conditions[?(@.type=="Ready")].message', 'Why the object is not ready.'),
  ageColumn,
];

export const apiServiceBindingKind = defineKind({
  resource: apiServiceBindings,
  description:
    'An APIServiceBinding binds the resources that the APIServiceExport of the same name in a provider cluster exports.',
  spec: Type.Object({ kubeconfigSecretRef: secretKeyRef }, specText),
  status: Type.Object(
    {
      ...v1alpha1Status,
      boundSchemas: Type.Optional(
        Type.Array(Type.Object(groupResourceFields), {
          description: 'The bound resources.',
          minItems: 1,
          maxItems: 256,
        }),
      ),
      permissionClaims: Type.Optional(permissionClaims),
    },
    statusText,
  ),
  printerColumns: bindingColumns,
  shortNames: ['sb'],
  categories: ['kube-bindings'],
  olderVersions: [
    {
      name: 'v1alpha1',
      spec: Type.Object({ kubeconfigSecretRef: v1alpha1SecretKeyRef }, specText),
      status: Type.Object(v1alpha1Status, statusText),
    },
  ],
});

export type ApiServiceBinding = ObjectOf<typeof apiServiceBindingKind>;
