import type { Kind } from '../schema/kind.ts';
import { apiServiceBindingKind } from './api-service-binding.ts';
import { apiServiceBindingBundleKind } from './api-service-binding-bundle.ts';
import { apiServiceExportKind } from './api-service-export.ts';
import { apiServiceExportRequestKind } from './api-service-export-request.ts';
import { apiServiceNamespaceKind } from './api-service-namespace.ts';
import { boundSchemaKind } from './bound-schema.ts';
import { clusterBindingKind } from './cluster-binding.ts';

/** The kinds that the server installs in the consumer. */
export const consumerKinds: readonly Kind[] = [apiServiceBindingKind, apiServiceBindingBundleKind];

/** The kinds of the provider, which its backend installs. */
export const providerKinds: readonly Kind[] = [
  apiServiceExportKind,
  apiServiceExportRequestKind,
  apiServiceNamespaceKind,
  boundSchemaKind,
  clusterBindingKind,
];
