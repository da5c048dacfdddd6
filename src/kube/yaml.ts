export { dump as dumpYaml, load as loadYaml } from 'js-yaml';
