import { Type } from 'typebox';
import { defineKind, type ObjectOf } from '../schema/kind.ts';
import { bindingColumns } from './api-service-binding.ts';
import { bindConditionList } from './condition.ts';
import { apiServiceBindingBundles } from './names.ts';
import { secretKeyRef } from './secret-key-ref.ts';

export const apiServiceBindingBundleKind = defineKind({
  resource: apiServiceBindingBundles,
  description:
    'For an APIServiceBindingBundle, the konnector creates one APIServiceBinding for each APIServiceExport of a provider.',
  spec: Type.Object({ kubeconfigSecretRef: secretKeyRef }, { description: 'The provider to bind.' }),
  status: Type.Object({ conditions: Type.Optional(bindConditionList) }, { description: 'The state of this bundle.' }),
  printerColumns: bindingColumns,
  shortNames: ['sbb'],
  categories: ['kube-bindings'],
});

export type ApiServiceBindingBundle = ObjectOf<typeof apiServiceBindingBundleKind>;
