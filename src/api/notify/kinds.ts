import type { Kind } from '../schema/kind.ts';
import { notificationProviderKind } from './notification-provider.ts';
import { notificationSubscriptionKind } from './notification-subscription.ts';

/** The CRDs of the chart are generated from them, one file for each. */
export const notifyKinds: readonly Kind[] = [notificationProviderKind, notificationSubscriptionKind];
