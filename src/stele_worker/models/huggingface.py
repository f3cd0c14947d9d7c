"""Build models of transformers from a model type or a folder, never from the hub, and infer their inputs."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read at the import
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")

import transformers
from transformers import AutoConfig

from stele_worker.models.errors import SpecError
from stele_worker.models.inputs import Input
from stele_worker.models.signatures import parameters
from stele_worker.models.specs import nearest

BATCH, LENGTH = 4, 128
TEXT = ("AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM")
OTHERS = ("AutoModelForImageClassification", "AutoModelForSpeechSeq2Seq", "AutoModelForAudioClassification")
TINY = {
    2: "num_hidden_layers num_layers num_decoder_layers n_layer n_layers encoder_layers decoder_layers",
    4: "num_attention_heads num_heads n_head n_heads encoder_attention_heads decoder_attention_heads",
    16: "head_dim d_kv kv_channels",
    64: "hidden_size d_model n_embd dim embedding_size word_embed_proj_dim max_source_positions",
    128: "intermediate_size d_ff encoder_ffn_dim decoder_ffn_dim ffn_dim n_inner hidden_dim",
    1000: "vocab_size",
    32: "image_size",
    8: "patch_size",
}
SIZES = {name: size for size, names in TINY.items() for name in names.split()}
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim")
INITIALIZERS = ("initializer_range", "init_std")  # standard deviations of initial weights
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


def factory(name, folder, tiny):
    """Return a function without arguments that builds the model. Raise SpecError for an unknown type or folder."""
    config = configuration(name, folder)
    if tiny:
        config = shrink(config)
    return lambda: head(config)(config)


def configuration(name, folder):
    """Return the config of a model type, or of a folder with a config.json, which may be in the project."""
    path = os.path.join(folder, name)
    if os.path.isdir(path):
        try:
            return AutoConfig.from_pretrained(path, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise SpecError("hf:{}: the folder {} has no usable config.json: {}".format(name, path, error)) from error
    types = transformers.CONFIG_MAPPING.keys()
    if name not in types:
        message = "transformers {} has no model type {!r}, and {} is no folder.{}"
        raise SpecError(message.format(transformers.__version__, name, path, nearest(name, types)))
    return AutoConfig.for_model(name)


def head(config):
    """Return make(config) -> model: the class that the config names, else the first task that has this config.

    transformers lists encoders and encoder-decoders as causal models too, so their own tasks come first.
    """
    for name in config.architectures or ():
        if hasattr(transformers, name):
            cls = getattr(transformers, name)
            return getattr(cls, "_from_config", cls)  # as from_config, with the dtype of the config
    order = TEXT + OTHERS
    if config.is_encoder_decoder:
        order = ("AutoModelForSeq2SeqLM", "AutoModelForSpeechSeq2Seq") + order
    elif not getattr(config, "is_decoder", False):
        order = ("AutoModelForMaskedLM",) + order
    fit = [name for name in order if type(config) in getattr(transformers, name)._model_mapping]
    return getattr(transformers, fit[0] if fit else "AutoModel").from_config


def shrink(config):
    """Return a config of the same architecture with 2 layers and small sizes."""
    return type(config).from_dict(reduce_sizes(config.to_dict()))


def reduce_sizes(values):
    """Return a config's dict with small sizes, nested configs included. It gets no new attributes."""
    values = {name: reduce_sizes(value) if isinstance(value, dict) else value for name, value in values.items()}
    # narrow layers sum fewer numbers: activations near zero would hide differences between activation functions
    width = next((values[name] for name in WIDTHS if isinstance(values.get(name), int)), 0)
    for name in INITIALIZERS:
        if isinstance(values.get(name), float):
            values[name] *= max(width / SIZES["hidden_size"], 1) ** 0.5
    for name, size in SIZES.items():
        if isinstance(values.get(name), int):
            values[name] = min(values[name], size)
    if isinstance(values.get("num_key_value_heads"), int):  # grouped queries stay grouped
        heads = values.get("num_attention_heads")
        values["num_key_value_heads"] = 4 if values["num_key_value_heads"] == heads else 2
    for name, token in TOKENS.items():
        if isinstance(values.get(name), int) and values[name] >= SIZES["vocab_size"]:
            values[name] = token
    if isinstance(values.get("layer_types"), list):
        values["layer_types"] = values["layer_types"][: SIZES["num_hidden_layers"]]
    return values


def inputs(net):
    """Return the Inputs of a model by its config: text, images or sound, and the decoder's; None if unknown."""
    config = net.config
    main = net.main_input_name
    if main not in MAIN:
        return None
    result = MAIN[main](config)
    takes = [each.name for each in parameters(net.forward)]
    if config.is_encoder_decoder and "decoder_input_ids" in takes:  # an encoder alone has the config of both
        result.append(Input("decoder_input_ids", "int", (BATCH, length(config)), config.vocab_size))
    return tuple(result)


def length(config):
    return min(LENGTH, getattr(config, "max_position_embeddings", None) or LENGTH)


def text(config):
    config = config.get_text_config()
    shape = (BATCH, length(config))
    return [Input("input_ids", "int", shape, config.vocab_size), Input("attention_mask", "mask", shape)]


def images(config):
    size = getattr(config, "image_size", None) or 224
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    return [Input("pixel_values", "float", (BATCH, getattr(config, "num_channels", 3), height, width))]


def spectrograms(config):
    # two frames a position: Whisper's second convolution has stride 2
    frames = 2 * config.max_source_positions
    return [Input("input_features", "float", (BATCH, config.num_mel_bins, frames))]


def waves(config):
    return [Input("input_values", "float", (BATCH, 16000))]  # a second


MAIN = {"input_ids": text, "pixel_values": images, "input_features": spectrograms, "input_values": waves}
