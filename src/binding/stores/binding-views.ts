import type { ApiServiceBinding } from '../../api/binding/api-service-binding.ts';
import type { ApiServiceBindingBundle } from '../../api/binding/api-service-binding-bundle.ts';
import { readBindConditions } from '../../api/binding/condition.ts';
import { readPermissionClaims } from '../../api/binding/permission-claim.ts';
import { own } from '../../kit/json-value.ts';
import { records, text } from './common-view.ts';
import type { View } from './project.ts';
import type { BindingView, BundleView, GroupResource } from './views.ts';

export const bindingView: View<ApiServiceBinding['spec'], BindingView> = (common, spec, { status }) => ({
  ...common,
  secretRef: spec.kubeconfigSecretRef,
  conditions: readBindConditions(status),
  providerPrettyName: text(status, 'providerPrettyName'),
  boundSchemas: records(own(status, 'boundSchemas')).flatMap(groupResource),
  permissionClaims: readPermissionClaims(own(status, 'permissionClaims')),
});

/** Of a binding that cannot be read. */
export const blankBinding: ApiServiceBinding['spec'] = { kubeconfigSecretRef: { namespace: '', name: '', key: '' } };

export const bundleView: View<ApiServiceBindingBundle['spec'], BundleView> = (common, spec, { status }) => ({
  ...common,
  secretRef: spec.kubeconfigSecretRef,
  conditions: readBindConditions(status),
});

function groupResource(value: unknown): GroupResource[] {
  const resource = text(value, 'resource');
  return resource ? [{ group: text(value, 'group') ?? '', resource }] : [];
}
