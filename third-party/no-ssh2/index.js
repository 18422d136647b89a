exports.Client = undefined
