//! Extract rules: raw program output to readings
