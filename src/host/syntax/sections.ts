/** The lines around the statements of a dump. */

export const containerTitle = "%HostIrContainer {";
export const containerEnd = "} // %HostIrContainer";

export const kernelTitle = "%kernel {";
export const kernelEnd = "} // %kernel";

/** After the container: definitions of its names and axes. */
export const definitionsTitle = "Index definitions:";
export const transformsTitle = "TransformPrinter :";
