import type { Kind } from '../schema/kind.ts';
import { apiServiceBindingKind } from './api-service-binding.ts';
import { apiServiceBindingBundleKind } from './api-service-binding-bundle.ts';
import { apiServiceExportKind } from './api-service-export.ts';
import { apiServiceExportRequestKind } from './api-service-export-request.ts';
import { apiServiceNamespaceKind } from './api-service-namespace.ts';
import { boundSchemaKind } from './bound-schema.ts';
import { clusterBindingKind } from './cluster-binding.ts';

/** The server installs their CRDs in the consumer cluster. */
export const consumerKinds: readonly Kind[] = [apiServiceBindingKind, apiServiceBindingBundleKind];

/** The provider's backend installs their CRDs in the provider cluster. */
export const providerKinds: readonly Kind[] = [
  apiServiceExportKind,
  apiServiceExportRequestKind,
  apiServiceNamespaceKind,
  boundSchemaKind,
  clusterBindingKind,
];
